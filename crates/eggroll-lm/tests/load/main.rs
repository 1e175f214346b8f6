//! Pretrained models: opened, damaged, saved and opened again.

mod chat;
mod config;
mod dequantize;
mod formats;
mod forward;
mod fuzz;
mod hostile;
mod round_trip;
mod smollm2;
mod tokenizer;
mod write_gguf;
