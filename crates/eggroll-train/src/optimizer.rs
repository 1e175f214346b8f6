//! burn-optim's optimizers on estimated gradients.
//!
//! burn's module optimizer only takes parameters on an autodiff device. Models here are never on one: their parameters
//! are lifted for the step and lowered again, which moves no data.

use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, OptimizerRecord, SgdConfig};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// An optimizer by name and burn-optim's settings: what configuration files hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptimizerConfig {
    /// Gradient descent, with momentum if configured.
    Sgd(SgdConfig),
    /// Adam.
    Adam(AdamConfig),
    /// Adam with decoupled weight decay.
    AdamW(AdamWConfig),
}

impl OptimizerConfig {
    /// Builds the optimizer.
    pub fn init(&self) -> Optimizer {
        Optimizer(match self {
            Self::Sgd(config) => config.init(),
            Self::Adam(config) => config.init(),
            Self::AdamW(config) => config.init(),
        })
    }
}

impl From<SgdConfig> for OptimizerConfig {
    fn from(config: SgdConfig) -> Self {
        Self::Sgd(config)
    }
}

impl From<AdamConfig> for OptimizerConfig {
    fn from(config: AdamConfig) -> Self {
        Self::Adam(config)
    }
}

impl From<AdamWConfig> for OptimizerConfig {
    fn from(config: AdamWConfig) -> Self {
        Self::AdamW(config)
    }
}

/// One of burn's module optimizers, for models that are not on an autodiff device.
#[derive(Clone)]
pub struct Optimizer(ModuleOptimizer);

impl Optimizer {
    /// One step on `model`; gradients on its own device, by parameter. Parameters without a gradient stay as they are,
    /// whatever the weight decay.
    pub fn step<M: Module>(&mut self, rate: impl Into<ModuleLearningRate>, model: M, gradients: GradientsParams) -> M {
        let lifted = model.map(&mut Lift);
        self.0.step(rate, lifted, gradients).map(&mut Lower)
    }

    pub(crate) fn to_record(&self) -> OptimizerRecord {
        self.0.to_record()
    }

    pub(crate) fn load_record(self, record: OptimizerRecord) -> Self {
        Self(self.0.load_record(record))
    }
}

struct Lift;

impl ModuleMapper for Lift {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(Tensor::from_inner)
    }
}

struct Lower;

impl ModuleMapper for Lower {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(Tensor::inner)
    }
}
