#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod environments;
mod expected_values;
#[cfg(feature = "mujoco")]
pub mod mujoco;
mod rollouts;

#[cfg(feature = "host")]
pub use burn_rl::{Environment as HostEnvironment, StepResult};
pub use eggroll_core::device_rollout::{Dynamics, Symbol, SymbolicStep};
pub use environments::{
    Acrobot, ActionSpace, Bandit, CartPole, EndOfEpisode, EpisodeKey, Episodes, Flag, HostTransition, Memory,
    MountainCar, MountainCarContinuous, Number, Numbers, Pendulum, Physics, Step, TensorEnvironment, Transition,
};
pub use expected_values::{
    ActionValue, Decision, ExpectedValues, ExpectedValuesConfig, ExpectedValuesError, SampledWorlds, WorldKey,
    WorldSampler,
};
pub use rollouts::{
    ActionHead, EpisodeStatistics, EvaluationConfig, FeedForward, ObservationNormalizer, Policy, PolicyLayer,
    RolloutConfig, RolloutError, RolloutResult, Rollouts, Runner, feed_forward,
};
#[cfg(feature = "host")]
pub use rollouts::{HostRolloutConfig, HostRollouts, HostTask};
