//! Tied fields after a step: optimizers move the first one, and the others follow.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId, Parameter};
use burn::optim::GradientsParams;
use burn::tensor::{Int, Tensor};
use std::any::Any;
use std::collections::{HashMap, HashSet};

/// Gives all fields of each tied parameter the value of the first one.
pub(crate) fn tie<M: Module>(model: M, is_tied: impl Fn(ParamId) -> bool) -> M {
    model.map(&mut Tie { is_tied, first: HashMap::new() })
}

/// The parameters that have a gradient and more than one field.
pub(super) fn tied<M: Module>(model: &M, gradients: &GradientsParams) -> HashSet<ParamId> {
    let mut tied = TiedGradients { gradients, met: HashSet::new(), found: HashSet::new() };
    model.visit(&mut tied);
    tied.found
}

struct TiedGradients<'a> {
    gradients: &'a GradientsParams,
    met: HashSet<ParamId>,
    found: HashSet<ParamId>,
}

impl ModuleVisitor for TiedGradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.met.insert(param.id) && self.gradients.get::<D>(param.id).is_some() {
            self.found.insert(param.id);
        }
    }
}

struct Tie<F> {
    is_tied: F,
    /// The first field of each tied parameter.
    first: HashMap<ParamId, Box<dyn Any>>,
}

impl<F: Fn(ParamId) -> bool> Tie<F> {
    fn field<T: Parameter + 'static>(&mut self, param: Param<T>) -> Param<T> {
        if !(self.is_tied)(param.id) {
            return param;
        }
        match self.first.get(&param.id).and_then(|first| first.downcast_ref::<Param<T>>()) {
            None => {
                self.first.insert(param.id, Box::new(param.clone()));
                param
            }
            // A clone shares the value, which scopes then need not compare; conversions of records, of which Burn only prints whether there
            // are any, stay the field's.
            Some(first) if format!("{first:?}") == format!("{param:?}") => first.clone(),
            Some(first) => param.map(|_| first.val()),
        }
    }
}

impl<F: Fn(ParamId) -> bool> ModuleMapper for Tie<F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.field(param)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.field(param)
    }
}
