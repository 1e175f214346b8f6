#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]

mod backend;
mod backends;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub mod chain;
#[cfg(test)]
mod conformance;
pub mod counters;
mod device_name;
pub mod device_rollout;
pub mod elementary;
mod entry;
mod finite;
mod identity;
pub mod integer;
mod key;
mod launch_count;
mod layer;
mod materialize;
mod matrix;
mod member_state;
pub mod messages;
mod noise_on_rows;
mod noise_store;
pub mod noiser;
pub mod numbers;
pub mod ops;
pub mod paths;
mod pattern;
pub mod profile;
pub mod reference;
pub mod rng;
mod role;
mod roles;
mod scales;
pub mod scope;
mod simd;
mod spread;
mod summary;
pub mod sync;
mod table;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub mod transformer;

pub use backend::is_on_host;
pub use device_name::{DeviceName, DeviceNameError, hardware_name};
pub use entry::{ParameterEntry, ParameterKind, TableError};
pub use finite::{NonFiniteError, check_finite};
pub use identity::{Field, ParameterTensor};
pub use key::{NoiseDistribution, NoiseKey, PairRange};
pub use launch_count::LaunchCount;
pub use matrix::MatrixView;
pub use member_state::MemberState;
pub use noise_on_rows::NoiseOnRows;
pub use noise_store::{MaterializedNoise, NoiseSourceConfig, NoiseSourceError};
pub use noiser::{
    BaselineSubtractionConfig, CustomNoiser, EggrollConfig, IntegerRule, Noiser, NoiserConfig, NoiserError,
    NoiserProperties, OpenEsConfig, QEggrollConfig, SparseConfig,
};
pub use role::{ParameterNoise, Role};
pub use simd::InstructionSet;
pub use spread::SpreadError;
pub use summary::ParameterSummary;
pub use table::ParameterTable;
