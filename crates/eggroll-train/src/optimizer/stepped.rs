//! A step of Burn's optimizers, which want a model with autodiff.

use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Tensor};
use std::collections::HashMap;

/// Whether a parameter of this type is stepped on in f32.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The model after a step. For parameters in half precision it is computed in f32, and so is the optimizer's state: Burn reads states as f32, and small
/// squares would be 0 in f16.
pub(super) fn stepped<M: Module>(
    steps: &mut ModuleOptimizer,
    rate: ModuleLearningRate,
    model: M,
    gradients: GradientsParams,
) -> M {
    let mut lift = Lift { gradients, halves: HashMap::new() };
    let lifted = model.map(&mut lift);
    let Lift { gradients, halves } = lift;
    steps.step(rate, lifted, gradients).map(&mut Lower { halves })
}

struct Lift {
    gradients: GradientsParams,
    /// Types of parameters in half precision.
    halves: HashMap<ParamId, DType>,
}

impl ModuleMapper for Lift {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = param.val().dtype();
        let gradient = self.gradients.get::<D>(param.id).filter(|_| is_half(dtype));
        let Some(gradient) = gradient else { return param.map(Tensor::from_inner) };
        self.halves.insert(param.id, dtype);
        self.gradients.remove::<D>(param.id);
        self.gradients.register(param.id, gradient.cast(DType::F32));
        param.map(|value| Tensor::from_inner(value.cast(DType::F32)))
    }
}

struct Lower {
    halves: HashMap<ParamId, DType>,
}

impl ModuleMapper for Lower {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let half = self.halves.get(&param.id).copied();
        param.map(|value| match half {
            Some(dtype) => value.inner().cast(dtype),
            None => value.inner(),
        })
    }
}
