#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod communicator;
mod config;
mod error;
mod estimate;
mod fitness;
mod memory;
mod named;
mod optimizer;
mod population;
mod report;
pub mod settings;
mod strategy;
mod transform;
mod update;

pub use communicator::{Alone, Communicator, evaluate_sharded, gather_fitness, own_members, shard};
pub use config::{
    Credit, CustomSigma, EvolutionStrategyConfig, GradientScale, NoiseScale, RateScale, RunningSettings, SigmaSchedule,
};
pub use eggroll_core::MemberState;
pub use error::{ConfigError, DistributionError, Error, MemoryError, RecordError, TellError};
pub use estimate::{ExpectedCosine, Forecast, ParameterForecast, SplitHalf, gradient_cosine};
pub use fitness::{CustomShaping, Fitness, FitnessShaping, PairStatistics, Scores, fold_pairs};
pub use optimizer::{ClipUpConfig, IntegerAdamWConfig, IntegerMuonConfig, MuonAdamWConfig, Optimizer, OptimizerConfig};
pub use population::{Credits, MemberChunk, ParameterCredit, Population, RowCheck, workers};
pub use report::GenerationReport;
pub use strategy::{EvolutionStrategy, ProbedSigma, SigmaProbe, StrategyRecord};
pub use transform::{CustomTransform, GradientTransform, ParameterGradient};
pub use update::{KeptTensors, clip_norm};
