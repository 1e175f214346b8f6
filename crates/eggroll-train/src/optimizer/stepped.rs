//! A step of Burn's optimizers, which want a model with autodiff.

use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;

/// The model after a step.
pub(super) fn stepped<M: Module>(
    steps: &mut ModuleOptimizer,
    rate: ModuleLearningRate,
    model: M,
    gradients: GradientsParams,
) -> M {
    let lifted = model.map(&mut Lift);
    steps.step(rate, lifted, gradients).map(&mut Lower)
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
