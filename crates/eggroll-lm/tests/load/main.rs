//! Pretrained models: opened, damaged, saved and opened again.

mod chat;
mod config;
mod dequantize;
#[path = "../shared/fetched.rs"]
mod fetched;
mod fits;
mod formats;
mod forward;
mod fuzz;
mod fuzz_configs;
mod hostile;
mod quantized;
mod relatives;
mod round_trip;
mod sentencepiece;
mod smollm2;
#[path = "../shared/stored.rs"]
mod stored;
mod tokenizer;
#[path = "../shared/write_gguf.rs"]
mod write_gguf;
