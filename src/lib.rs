//! Evolution strategies for the [Burn](https://burn.dev) deep-learning framework: train a Burn model without backpropagation, on any
//! score, differentiable or not.
//!
//! A *generation* perturbs the model's parameters in many ways, scores each perturbed model (a *member*), and moves the parameters
//! towards the noise of better members. EGGROLL's noise has a low rank, so all members of a *population* run as one batched
//! forward pass. If you have a gradient, use it: backpropagation needs far fewer evaluations.
//!
//! ```
//! use eggroll::prelude::*;
//!
//! # fn main() -> Result<(), eggroll::Error> {
//! let device = Device::flex();
//! let x = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], &device);
//! let y = Tensor::<2>::from_floats([[1.0], [2.0], [3.0]], &device);
//!
//! let mut model = nn::LinearConfig::new(2, 1).init(&device); // a drop-in replacement for burn::nn::Linear
//! let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
//! let mut strategy = config.with_population_size(64).with_learning_rate(0.5).try_init(&model)?;
//! for _ in 0..200 {
//!     let population = strategy.ask();
//!     let fitness = population.evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone()));
//!     strategy.tell(&mut model, population, fitness)?;
//! }
//! let error: f32 = (model.forward(x) - y).abs().max().into_scalar();
//! assert!(error < 0.1, "{error}");
//! # Ok(())
//! # }
//! ```
//!
//! | to | see |
//! |---|---|
//! | choose noise, population, sigma, learning rate | [`EvolutionStrategyConfig`](prelude::EvolutionStrategyConfig), [`core::noiser`] |
//! | ask for a population and tell its fitness | [`EvolutionStrategy`](prelude::EvolutionStrategy) |
//! | score a population | [`Population::evaluate`](prelude::Population::evaluate), [`MemberChunk`](prelude::MemberChunk) |
//! | build a model | [`nn`], [`nn::integer`] |
//! | train a model that you cannot change | [`PopulationGraph`](prelude::PopulationGraph), [`Population::evaluate_each`](prelude::Population::evaluate_each) |
//! | play episodes (feature `rl`) | [`rl`], [`Rollouts`](prelude::Rollouts) |
//! | fine-tune a pretrained language model with your own reward (feature `lm`) | [`lm`], [`Finetune`](lm::Finetune) |
//! | run with checkpoints and logs | [`run`], [`TrainingLoop`](prelude::TrainingLoop) |
//! | handle errors of all crates | [`Error`] |
//!
//! The repository has examples, a book (`docs/book/src/SUMMARY.md`), and measured results (`docs/benchmarks.md`).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

/// The programs of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;

pub use eggroll_core as core;
#[cfg(feature = "lm")]
pub use eggroll_lm as lm;
#[cfg(feature = "nats")]
pub use eggroll_nats as nats;
pub use eggroll_nn as nn;
#[cfg(feature = "rl")]
pub use eggroll_rl as rl;
#[cfg(feature = "run")]
pub use eggroll_run as run;
#[cfg(feature = "run")]
pub use eggroll_run::diagnostics::diagnose;
pub use eggroll_train as train;
pub use error::Error;

/// The types that most programs need: `use eggroll::prelude::*;`.
///
/// It is Burn's prelude with one difference: `nn` is [`eggroll::nn`](crate::nn), whose layers are perturbed inside `evaluate`. Burn's
/// layers are in `burn::nn`.
pub mod prelude {
    pub use burn::optim::{AdamConfig, SgdConfig};
    pub use burn::prelude::*;
    pub use burn::tensor::activation;
    pub use eggroll_core::{
        BaselineSubtractionConfig, CustomNoiser, EggrollConfig, NoiseDistribution, NoiseSourceConfig, Noiser,
        NoiserConfig, OpenEsConfig, QEggrollConfig, Role, SparseConfig,
    };
    #[cfg(feature = "nats")]
    pub use eggroll_nats as nats;
    pub use eggroll_nn as nn;
    #[cfg(feature = "graph")]
    pub use eggroll_nn::graph::PopulationGraph;
    pub use eggroll_nn::loss::cross_entropy;
    #[cfg(feature = "rl")]
    pub use eggroll_rl::{ActionHead, ActionSpace, EpisodeKey, TensorEnvironment};
    #[cfg(feature = "rl")]
    pub use eggroll_rl::{EvaluationConfig, Policy, RolloutConfig, Rollouts, feed_forward};
    #[cfg(feature = "run")]
    pub use eggroll_run::{Checkpoints, RunFolder, TrainingLoop, data_digest, parameter_digest};
    #[cfg(feature = "learner")]
    pub use eggroll_run::{EsTask, EsTraining, EsTrainingConfig};
    pub use eggroll_train::{
        ClipUpConfig, Credit, CustomShaping, CustomSigma, EvolutionStrategy, EvolutionStrategyConfig, Fitness,
        FitnessShaping, GenerationReport, GradientScale, GradientTransform, IntegerAdamWConfig, IntegerMuonConfig,
        MemberChunk, MuonAdamWConfig, NoiseScale, OptimizerConfig, ParameterGradient, Population, RateScale,
        SigmaSchedule,
    };
}
