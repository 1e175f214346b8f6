#![doc = include_str!("../README.md")]

mod carried;
mod checkpoint;
mod clip;
mod config;
mod cosine;
pub mod diagnostics;
mod digest;
mod episode;
mod error;
mod estimate;
mod evaluate_members;
mod fitness;
mod input_projection;
mod log;
mod optimizer;
mod population;
pub mod profile;
mod strategy;
pub mod text;
mod training_loop;
mod votes;
mod workers;

pub use carried::{Carried, SavedState};
pub use checkpoint::{Checkpoints, load};
pub use clip::clip_norm;
pub use config::{EstimateScale, EvolutionStrategyConfig, SigmaSchedule};
pub use digest::parameter_digest;
pub use error::Error;
pub use fitness::{Fitness, FitnessShaping, Scores, fold_pairs};
pub use input_projection::InputProjection;
pub use log::JsonLines;
pub use optimizer::{ClipUpConfig, IntegerAdamWConfig, MuonAdamWConfig, Optimizer, OptimizerConfig};
pub use population::{Members, Population};
pub use strategy::{EvolutionStrategy, GenerationReport};
pub use training_loop::{TrainingLoop, UserError};
