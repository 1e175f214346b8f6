//! Perturbed values of parameters, for uses that need them formed.

use super::trace::Parameter;
use burn::backend::Dispatch;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{Shape, Tensor};
use eggroll_core::MatrixView;
use eggroll_core::scope::ActiveParameter;

/// A parameter of two axes or more as the matrix `[d_input, d_output]`, the shape of its noise.
pub(super) fn matrix(parameter: &Parameter) -> Tensor<2> {
    let shape = parameter.shape();
    let view = MatrixView::of(&shape).expect("a matrix has two axes or more");
    if shape.len() == 2 {
        return Tensor::from_dispatch(parameter.value.clone());
    }
    let flat = Shape::new([view.d_output, view.d_input]);
    Tensor::<2>::from_dispatch(Dispatch::float_reshape(parameter.value.clone(), flat)).transpose()
}

/// A parameter of two axes or more as every member sees it: every row of its matrix, looked up.
///
/// # Shapes
///
/// - output: `[members, elements]`, row-major in the parameter's shape
pub(super) fn values(active: &ActiveParameter, parameter: &Parameter) -> Tensor<2> {
    let (matrix, members) = (matrix(parameter), active.pairs().members());
    let [d_input, d_output] = matrix.dims();
    let values = active.matrix(matrix); // [members · d_input, d_output]
    let values = values.reshape([members, d_input, d_output]);
    let values = if parameter.shape().len() == 2 { values } else { values.swap_dims(1, 2) };
    values.reshape([members, d_input * d_output])
}
