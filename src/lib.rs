#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use eggroll_core as core;
pub use eggroll_envs as envs;
pub use eggroll_nn as nn;
pub use eggroll_train as train;
pub use eggroll_train::diagnostics::diagnose;

/// What most programs need: `use eggroll::prelude::*;`.
pub mod prelude {
    pub use burn::prelude::*;
    pub use burn::tensor::activation;
    pub use eggroll_core::{
        BaselineConfig, EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig,
        QEggrollConfig, Role, SparseConfig,
    };
    pub use eggroll_envs::{ActionSpace, EpisodeKey, TensorEnvironment};
    pub use eggroll_nn::graph::PopulationGraph;
    pub use eggroll_nn::loss::cross_entropy;
    pub use eggroll_train::{
        Checkpoints, ClipUpConfig, EsTask, EsTraining, EsTrainingConfig, EstimateScale, EvolutionStrategy,
        EvolutionStrategyConfig, Fitness, FitnessShaping, InputProjection, IntegerAdamWConfig, Members,
        OptimizerConfig, Policy, Population, RolloutConfig, Rollouts, SigmaSchedule, TrainingLoop, feed_forward,
        parameter_digest,
    };
}
