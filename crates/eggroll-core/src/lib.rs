#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]

mod arithmetic;
mod backend;
mod fused;
mod model;
mod noise;
pub mod ops;
pub mod rng;
mod rollout;
pub mod scope;
mod simd;
mod testing;
mod work;

pub use arithmetic::{elementary, integer};
pub use fused::device_rollout;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub use fused::{chain, transformer};
pub use model::entry::{ParameterEntry, ParameterKind, TableError};
pub use model::finite::{NonFiniteError, check_finite};
pub use model::identity::{Field, ParameterTensor};
pub use model::paths;
pub use model::spread::SpreadError;
pub use model::summary::ParameterSummary;
pub use model::table::ParameterTable;
pub use noise::matrix::MatrixView;
pub use noise::noiser::{
    self, BaselineSubtractionConfig, CustomNoiser, EggrollConfig, IntegerRule, Noiser, NoiserConfig, NoiserError,
    NoiserProperties, OpenEsConfig, QEggrollConfig, SparseConfig,
};
pub use noise::on_rows::NoiseOnRows;
pub use noise::role::{ParameterNoise, Role};
pub use rng::key::{NoiseDistribution, NoiseKey, PairRange};
pub use scope::member_state::MemberState;
pub use scope::noise_store::{MaterializedNoise, NoiseSourceConfig, NoiseSourceError};
pub use simd::InstructionSet;
pub use testing::reference;
pub use work::device::is_on_host;
pub use work::device_name::{DeviceName, DeviceNameError, hardware_name};
pub use work::launch_count::LaunchCount;
pub use work::{counters, messages, numbers, profile, sync};
