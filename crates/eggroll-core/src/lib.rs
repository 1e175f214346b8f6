#![doc = include_str!("../README.md")]
#![cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]

mod backend;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub mod chain;
#[cfg(test)]
mod conformance;
pub mod counters;
mod held;
pub mod integer;
mod key;
mod materialise;
mod matrix;
pub mod noiser;
pub mod ops;
pub mod profile;
pub mod reference;
pub mod rng;
mod roles;
pub mod scope;
mod simd;
mod summary;
mod table;

pub use held::{HeldNoise, NoiseSourceConfig, NoiseSourceError};
pub use key::{NoiseKey, PairRange};
pub use matrix::MatrixView;
pub use noiser::{
    BaselineConfig, EggrollConfig, Noiser, NoiserConfig, NoiserError, OpenEsConfig, ParameterNoise, QEggrollConfig,
    Role, SparseConfig,
};
pub use rng::NoiseDistribution;
pub use simd::InstructionSet;
pub use summary::ParameterSummary;
pub use table::{ParameterEntry, ParameterKind, ParameterTable, TableError, is_state};
