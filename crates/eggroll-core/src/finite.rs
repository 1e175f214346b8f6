//! Parameters that are numbers: a NaN in one weight makes every fitness NaN.

use crate::paths::{ModulePath, PathVisitor, visit_with_paths};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// A parameter with values that are NaN or infinite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{path}\" of shape {shape:?} has {count} values that are NaN or infinite: load or initialise the model anew")]
pub struct NonFiniteError {
    /// The parameter.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Values that are NaN or infinite.
    pub count: usize,
}

/// Refuses a model with a float parameter that is NaN or infinite anywhere, running statistics included: one host read for each
/// parameter, which [counters](crate::counters), those of generations, leave out.
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
    let mut search = Search(None);
    visit_with_paths(model, &mut search);
    search.0.map_or(Ok(()), Err)
}

struct Search(Option<NonFiniteError>);

impl PathVisitor for Search {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        let value = param.val();
        let shape = value.dims();
        if self.0.is_some() || shape.contains(&0) {
            return;
        }
        if !value.clone().is_finite().all().into_scalar::<bool>() {
            // In integers: half precision would round the count.
            let count: i64 = value.is_finite().bool_not().int().sum().into_scalar();
            let (path, shape) = (path.to_string(), shape.to_vec());
            self.0 = Some(NonFiniteError { path, shape, count: count as usize });
        }
    }
}
