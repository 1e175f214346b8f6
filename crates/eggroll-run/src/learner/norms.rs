//! Lengths of gradients, steps and models.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};
use eggroll_core::{counters, profile};
use std::collections::HashSet;

/// Euclidean lengths over all float parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Norms {
    /// Length of the optimizer's gradient; 0 in a generation without a step.
    pub gradient: f64,
    /// Length of the optimizer's step.
    pub update: f64,
    /// Length of the parameters after the step.
    pub parameters: f64,
}

impl Norms {
    /// Reads the lengths to the host at once; `None` of a model without float parameters.
    pub fn read<M: Module>(gradient: Option<Tensor<1>>, before: &M, after: &M) -> Option<Self> {
        let after = flat(after, None);
        let parameters = sum_of_squares(after.clone())?;
        let steps = flat(before, None).into_iter().zip(after).map(|(before, after)| after - before).collect();
        let update = sum_of_squares(steps)?;
        let device = parameters.device();
        let gradient = gradient.unwrap_or_else(|| Tensor::zeros([1], &device)).to_device(&device);
        counters::add_host_read();
        let waiting = profile::waiting();
        let data = Tensor::cat(vec![gradient.cast(DType::F32), update, parameters], 0).into_data();
        drop(waiting);
        let mut lengths = data.iter::<f64>().map(f64::sqrt);
        let mut next = || lengths.next().expect("three sums");
        Some(Self { gradient: next(), update: next(), parameters: next() })
    }
}

/// The sum of squares of a gradient, on the device: `[1]`; `None` without gradients.
pub(crate) fn gradient_squares<M: Module>(model: &M, gradients: &GradientsParams) -> Option<Tensor<1>> {
    sum_of_squares(flat(model, Some(gradients)))
}

fn sum_of_squares(tensors: Vec<Tensor<1>>) -> Option<Tensor<1>> {
    let device = tensors.first()?.device();
    let sums = tensors.into_iter().map(|tensor| tensor.square().sum().to_device(&device)).collect();
    Some(Tensor::cat(sums, 0).sum())
}

/// The float parameters of a model that are not empty, or their gradients, each as one row of f32.
fn flat<M: Module>(model: &M, gradients: Option<&GradientsParams>) -> Vec<Tensor<1>> {
    let mut visitor = Flatten { gradients, seen: HashSet::new(), found: Vec::new() };
    model.visit(&mut visitor);
    visitor.found
}

struct Flatten<'a> {
    gradients: Option<&'a GradientsParams>,
    /// A tied parameter is visited more than once.
    seen: HashSet<ParamId>,
    found: Vec<Tensor<1>>,
}

impl ModuleVisitor for Flatten<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = match self.gradients {
            None => Some(param.val()),
            Some(gradients) => gradients.get::<D>(param.id),
        };
        if let Some(value) = value {
            let count: usize = value.dims().iter().product();
            if count > 0 && self.seen.insert(param.id) {
                self.found.push(value.reshape([count]).cast(DType::F32));
            }
        }
    }
}
