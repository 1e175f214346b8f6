//! Parameters that are not numbers are not saved.

use crate::error::{Error, RunError};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use eggroll_core::{ParameterKind, Role};
use eggroll_train::EvolutionStrategy;
use std::collections::BTreeSet;

/// Refuses a model with trained parameters that are NaN or infinite; constants may be. Reads all parameters.
///
/// # Errors
///
/// [`RunError::NonFiniteParameters`] with the first of them and the strategy's last generation.
pub(crate) fn check_finite<M: Module>(strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
    let entries = strategy.parameters().entries().iter();
    let trained = entries.filter(|entry| entry.kind == ParameterKind::Float && entry.role != Role::Frozen);
    let mut finder = Finder { trained: trained.map(|entry| entry.path.to_string()).collect(), found: None };
    visit_with_paths(model, &mut finder);
    match finder.found {
        None => Ok(()),
        Some((parameter, count)) => {
            let generation = strategy.generation().saturating_sub(1);
            Err(RunError::NonFiniteParameters { generation, parameter, count }.into())
        }
    }
}

struct Finder {
    trained: BTreeSet<String>,
    found: Option<(String, usize)>,
}

impl PathVisitor for Finder {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        if self.found.is_none() && self.trained.contains(&path.to_string()) {
            let count = param.val().into_data().iter::<f64>().filter(|value| !value.is_finite()).count();
            self.found = (count > 0).then(|| (path.to_string(), count));
        }
    }
}
