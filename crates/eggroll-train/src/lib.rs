#![doc = include_str!("../README.md")]

mod carried;
mod checkpoint;
mod clip;
mod config;
mod cosine;
pub mod diagnostics;
mod digest;
pub mod distribution;
pub mod durable;
mod episode;
mod error;
mod estimate;
mod evaluate_members;
mod filled;
mod fitness;
mod input_projection;
mod learner;
mod log;
mod memory;
mod norms;
mod optimizer;
mod population;
pub mod profile;
mod replay;
mod rollout;
mod slice;
mod strategy;
pub mod text;
mod training_loop;
mod votes;
mod workers;

pub use burn::train::{Interrupter, Interruption};
pub use carried::{Carried, SavedState};
pub use checkpoint::{Checkpoints, load};
pub use clip::clip_norm;
pub use config::{EstimateScale, EvolutionStrategyConfig, SigmaSchedule};
pub use digest::{parameter_digest, portable_digest};
pub use error::Error;
pub use fitness::{Fitness, FitnessShaping, Scores, fold_pairs};
pub use input_projection::InputProjection;
pub use learner::{
    Display, EarlyStoppingConfig, EsOutcome, EsTask, EsTraining, EsTrainingConfig, Generation, GenerationItem,
    MetricChoice, NumberMetric, Numbers, Stop, Times,
};
pub use log::JsonLines;
pub use optimizer::{ClipUpConfig, IntegerAdamWConfig, MuonAdamWConfig, Optimizer, OptimizerConfig};
pub use population::{Members, Population};
pub use replay::{ReplayLog, replay, replay_from, replay_range};
pub use rollout::{
    ActionHead, EpisodeStatistics, FeedForward, ObservationNormaliser, Policy, PolicyLayer, RolloutConfig,
    RolloutOutcome, Rollouts, feed_forward,
};
#[cfg(feature = "rl")]
pub use rollout::{HostRolloutConfig, HostRollouts, HostTask};
pub use strategy::{EvolutionStrategy, GenerationReport};
pub use training_loop::{TrainingLoop, UserError};
