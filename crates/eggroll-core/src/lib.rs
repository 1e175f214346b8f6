#![doc = include_str!("../README.md")]

mod backend;
#[cfg(test)]
mod conformance;
pub mod counters;
mod held;
pub mod integer;
mod key;
mod matrix;
pub mod noiser;
pub mod ops;
pub mod profile;
pub mod reference;
pub mod rng;
pub mod scope;
mod simd;
mod table;

pub use held::{HeldNoise, NoiseSourceConfig, NoiseSourceError};
pub use key::{NoiseKey, PairRange};
pub use matrix::MatrixView;
pub use noiser::{
    EggrollConfig, Noiser, NoiserConfig, NoiserError, OpenEsConfig, ParameterNoise, QEggrollConfig, Role,
};
pub use rng::NoiseDistribution;
pub use simd::InstructionSet;
pub use table::{ParameterEntry, ParameterKind, ParameterTable, TableError};
