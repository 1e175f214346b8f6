#![doc = include_str!("../README.md")]

mod carried;
mod checkpoint;
mod config;
mod cosine;
pub mod diagnostics;
mod digest;
mod error;
mod estimate;
mod evaluate_members;
mod fitness;
mod input_projection;
mod log;
mod memory;
mod optimizer;
mod population;
pub mod profile;
mod replay;
mod strategy;
pub mod text;
mod training_loop;
mod votes;
mod workers;

pub use carried::{Carried, SavedState};
pub use checkpoint::{Checkpoints, load};
pub use config::{EstimateScale, EvolutionStrategyConfig, SigmaSchedule};
pub use digest::parameter_digest;
pub use error::Error;
pub use fitness::{Fitness, FitnessShaping, Scores, fold_pairs};
pub use input_projection::InputProjection;
pub use log::JsonLines;
pub use optimizer::{Optimizer, OptimizerConfig};
pub use population::{Members, Population};
pub use replay::{ReplayLog, replay, replay_from, replay_range};
pub use strategy::{EvolutionStrategy, GenerationReport};
pub use training_loop::{TrainingLoop, UserError};
