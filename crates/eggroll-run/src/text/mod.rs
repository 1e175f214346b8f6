//! Text for models of bytes: files, streams of training sequences, statistics, likelihood and samples.
//!
//! Tokens are bytes of any encoding, or tokens of an [`Alphabet`]; token 0 starts a document
//! ([`EggModel`](eggroll_nn::integer::EggModel) resets its state there).

mod alphabet;
mod corpus;
mod likelihood;
mod model;
mod sampling;
mod statistics;
mod streams;

pub use alphabet::Alphabet;
pub use corpus::Text;
pub use likelihood::{BitsPerByte, bits_per_byte};
pub use model::ByteModel;
pub use sampling::{Sampler, printable};
pub use statistics::ByteStatistics;
pub use streams::{ByteStreams, TextBatch};
