#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;

pub use eggroll_core as core;
pub use eggroll_nn as nn;
pub use eggroll_rl as rl;
pub use eggroll_run as run;
pub use eggroll_run::diagnostics::diagnose;
pub use eggroll_train as train;
pub use error::Error;

/// What most programs need: `use eggroll::prelude::*;`.
///
/// It has Burn's prelude with one difference: `nn` is [`eggroll::nn`](crate::nn), whose layers are perturbed inside `evaluate`. Burn's
/// own are `burn::nn`.
pub mod prelude {
    pub use burn::optim::{AdamConfig, SgdConfig};
    pub use burn::prelude::*;
    pub use burn::tensor::activation;
    pub use eggroll_core::{
        BaselineSubtractionConfig, CustomNoiser, EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig,
        OpenEsConfig, QEggrollConfig, Role, SparseConfig,
    };
    pub use eggroll_nn as nn;
    #[cfg(feature = "graph")]
    pub use eggroll_nn::graph::PopulationGraph;
    pub use eggroll_nn::loss::cross_entropy;
    pub use eggroll_rl::{ActionSpace, EpisodeKey, TensorEnvironment};
    pub use eggroll_rl::{EvaluationConfig, Policy, RolloutConfig, Rollouts, feed_forward};
    pub use eggroll_run::{Checkpoints, RunFolder, TrainingLoop, data_digest, parameter_digest};
    #[cfg(feature = "learner")]
    pub use eggroll_run::{EsTask, EsTraining, EsTrainingConfig};
    pub use eggroll_train::{
        ClipUpConfig, CustomShaping, CustomSigma, EvolutionStrategy, EvolutionStrategyConfig, Fitness, FitnessShaping,
        GenerationReport, GradientScale, InputProjection, IntegerAdamWConfig, MemberChunk, OptimizerConfig, Population,
        SigmaSchedule,
    };
}
