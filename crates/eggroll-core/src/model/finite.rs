//! Checks that parameters are finite: a NaN in one weight makes every fitness NaN.

use crate::model::paths::{ModulePath, PathVisitor, visit_with_paths};
use crate::{ParameterTable, Role};
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use std::collections::BTreeSet;

/// A parameter with values that are NaN or infinite.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{path}\" of shape {shape:?} has {count} values that are NaN or infinite: load or initialize the model anew")]
pub struct NonFiniteError {
    /// The parameter.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Values that are NaN or infinite.
    pub count: usize,
}

crate::debug_is_message!(NonFiniteError);

/// Refuses a model with a float parameter that is NaN or infinite anywhere, running statistics included. Makes one host read
/// for each parameter; [counters](crate::work::counters), which count the work of generations, leave these out.
///
/// # Errors
///
/// [`NonFiniteError`] of the first such parameter.
///
/// # Example
///
/// ```
/// use burn::module::Param;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::check_finite;
///
/// let model = Param::from_tensor(Tensor::<1>::from_floats([1.0, f32::NAN, 2.0], &Device::flex()));
/// assert_eq!(check_finite(&model).unwrap_err().count, 1);
/// assert!(check_finite(&model.map(|x| x.slice([2..3]))).is_ok());
/// ```
pub fn check_finite<M: Module>(model: &M) -> Result<(), NonFiniteError> {
    search(model, |_| true)
}

impl ParameterTable {
    /// [`check_finite`] of trained parameters; constants, such as a mask, may be infinite but not NaN.
    ///
    /// # Errors
    ///
    /// [`NonFiniteError`] of the first such parameter.
    pub fn check_finite<M: Module>(&self, model: &M) -> Result<(), NonFiniteError> {
        let trained = self.entries().iter().filter(|entry| entry.role != Role::Frozen);
        let trained: BTreeSet<&str> = trained.map(|entry| entry.path.as_str()).collect();
        search(model, |path| trained.contains(path))
    }
}

/// The first parameter with NaN, or with infinity where it must be finite.
fn search<M: Module>(model: &M, is_finite: impl Fn(&str) -> bool) -> Result<(), NonFiniteError> {
    let mut search = Search { is_finite, found: None };
    visit_with_paths(model, &mut search);
    search.found.map_or(Ok(()), Err)
}

struct Search<F> {
    /// Whether a parameter must be finite.
    is_finite: F,
    found: Option<NonFiniteError>,
}

impl<F: Fn(&str) -> bool> PathVisitor for Search<F> {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape();
        let path = path.to_string();
        if self.found.is_some() || shape.contains(&0) {
            return;
        }
        let (value, is_finite) = (param.val(), (self.is_finite)(&path));
        let wrong = if is_finite { value.is_finite().bool_not() } else { value.is_nan() };
        if wrong.clone().any().into_scalar::<bool>() {
            // In integers: half precision would round the count.
            let count: i64 = wrong.int().sum().into_scalar();
            self.found = Some(NonFiniteError { path, shape: shape.to_vec(), count: count as usize });
        }
    }
}
