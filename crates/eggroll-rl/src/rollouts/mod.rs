//! Episodes of a whole population: rollouts in environments that are batched tensors.
//!
//! All members act at once: their environments are the rows of a batch, member-major, on the device of the policy. Nothing is read to
//! the host inside an episode but, every few steps, whether any is still running. A chain of linear layers ([`Policy::layers`]) runs
//! fused, without tensors. On CPUs a few pairs at a time run in one core's cache, with the same returns. On devices one kernel runs
//! the chain and the environment ([`TensorEnvironment::dynamics`](crate::TensorEnvironment::dynamics)), some hundred steps a launch.

mod config;
mod error;
mod evaluate;
mod gather;
mod head;
#[cfg(feature = "host")]
mod host;
mod keys;
mod moments;
mod normalizer;
mod on_device;
mod policy;
mod runner;
mod statistics;
mod tensors;
eggroll_core::with_host_kernels! { mod fused; }

pub use config::{EvaluationConfig, RolloutConfig};
pub use error::RolloutError;
pub use evaluate::Rollouts;
pub use head::ActionHead;
#[cfg(feature = "host")]
pub use host::{HostRolloutConfig, HostRollouts, HostTask};
pub use normalizer::ObservationNormalizer;
pub use policy::{FeedForward, Policy, PolicyLayer, feed_forward};
pub use runner::Runner;
pub use statistics::{EpisodeStatistics, RolloutResult};
