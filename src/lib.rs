#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use eggroll_core as core;
pub use eggroll_nn as nn;
pub use eggroll_rl as rl;
pub use eggroll_run as run;
pub use eggroll_run::Error;
pub use eggroll_run::diagnostics::diagnose;
pub use eggroll_train as train;

/// What most programs need: `use eggroll::prelude::*;`.
pub mod prelude {
    pub use burn::prelude::*;
    pub use burn::tensor::activation;
    pub use eggroll_core::{
        BaselineConfig, EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig,
        QEggrollConfig, Role, SparseConfig,
    };
    pub use eggroll_nn::graph::PopulationGraph;
    pub use eggroll_nn::loss::cross_entropy;
    pub use eggroll_rl::{ActionSpace, EpisodeKey, TensorEnvironment};
    pub use eggroll_rl::{Policy, RolloutConfig, Rollouts, feed_forward};
    pub use eggroll_run::{Checkpoints, RunFolder, TrainingLoop, data_digest, parameter_digest};
    #[cfg(feature = "learner")]
    pub use eggroll_run::{EsTask, EsTraining, EsTrainingConfig};
    pub use eggroll_train::{
        ClipUpConfig, EstimateScale, EvolutionStrategy, EvolutionStrategyConfig, Fitness, FitnessShaping,
        InputProjection, IntegerAdamWConfig, Members, OptimizerConfig, Population, SigmaSchedule,
    };
}
