//! A step over all parameters as one vector: for optimizers with one norm over all of them.

use super::stepped::stepped;
use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Tensor};
use std::collections::HashMap;
use std::ops::Range;

/// The identifier of the vector, in the optimizer's record.
const VECTOR: u64 = 0;

/// Concatenates all parameters that have a gradient, in f32 on the first one's device, and steps on them.
pub(super) fn step<M: Module>(
    steps: &mut ModuleOptimizer,
    rate: ModuleLearningRate,
    model: M,
    gradients: &GradientsParams,
) -> M {
    let mut parts = FlattenedParts {
        gradients,
        device: None,
        places: HashMap::new(),
        end: 0,
        values: Vec::new(),
        slopes: Vec::new(),
    };
    model.visit(&mut parts);
    if parts.values.is_empty() {
        return model;
    }
    let FlattenedParts { places, values, slopes, .. } = parts;
    let id = ParamId::from(VECTOR);
    let mut gradient = GradientsParams::new();
    gradient.register(id, Tensor::cat(slopes, 0));
    let vector = stepped(steps, rate, Param::initialized(id, Tensor::cat(values, 0)), gradient).val();
    model.map(&mut Restore { vector, places })
}

/// Parameters and gradients, flat, one after the other.
struct FlattenedParts<'a> {
    gradients: &'a GradientsParams,
    device: Option<Device>,
    places: HashMap<ParamId, Range<usize>>,
    end: usize,
    values: Vec<Tensor<1>>,
    slopes: Vec<Tensor<1>>,
}

impl ModuleVisitor for FlattenedParts<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        let value = param.val();
        let elements = value.shape().num_elements();
        // A tied parameter is visited more than once.
        if self.places.contains_key(&param.id) {
            return;
        }
        self.places.insert(param.id, self.end..self.end + elements);
        self.end += elements;
        let device = self.device.get_or_insert_with(|| value.device()).clone();
        let flat = |tensor: Tensor<D>| tensor.reshape([elements]).cast(DType::F32).to_device(&device);
        self.values.push(flat(value));
        self.slopes.push(flat(gradient));
    }
}

/// Puts the parts of the vector back.
struct Restore {
    vector: Tensor<1>,
    places: HashMap<ParamId, Range<usize>>,
}

impl ModuleMapper for Restore {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(place) = self.places.get(&param.id) else {
            return param;
        };
        let part = self.vector.clone().slice(place.clone());
        param.map(|value| part.reshape(value.dims()).cast(value.dtype()).to_device(&value.device()))
    }
}
