#![doc = include_str!("../README.md")]

pub use eggroll_core as core;
pub use eggroll_nn as nn;
pub use eggroll_train as train;

/// What most programs need: `use eggroll::prelude::*;`.
pub mod prelude {
    pub use burn::prelude::*;
    pub use burn::tensor::activation;
    pub use eggroll_core::{
        EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig, QEggrollConfig, Role,
    };
    pub use eggroll_nn::graph::PopulationGraph;
    pub use eggroll_nn::loss::cross_entropy;
    pub use eggroll_train::{
        Checkpoints, EstimateScale, EvolutionStrategy, EvolutionStrategyConfig, Fitness, FitnessShaping,
        InputProjection, Members, OptimizerConfig, Population, SigmaSchedule, TrainingLoop, parameter_digest,
    };
}
