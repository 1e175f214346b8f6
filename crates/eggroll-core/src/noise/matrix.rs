//! Parameters seen as matrices, for low-rank noise in convolutions.

use burn::tensor::Tensor;

/// A parameter of two or more axes as the matrix `[d_input, d_output]`, the shape of its noise.
///
/// | shape | matrix |
/// |---|---|
/// | `[d_input, d_output]` | itself |
/// | `[d_output, a, b, …]`: convolutions | `[a·b·…, d_output]`, the transpose of the rows of the first axis |
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::MatrixView;
///
/// let weight = Tensor::<4>::from_data([[[[1.0, 2.0]]], [[[3.0, 4.0]]]], &Device::flex()); // [2, 1, 1, 2]
/// let view = MatrixView::of(&[2, 1, 1, 2]).unwrap();
/// assert_eq!((view.d_input, view.d_output), (2, 2));
/// let matrix = view.matrix(weight.clone());
/// assert_eq!(matrix.to_data().to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
/// assert_eq!(view.restore::<4>(matrix, [2, 1, 1, 2]).to_data(), weight.to_data());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixView {
    /// Rows of the matrix: the inputs of one output.
    pub d_input: usize,
    /// Columns of the matrix.
    pub d_output: usize,
    transposed: bool,
}

impl MatrixView {
    /// The matrix of a parameter of this shape; `None` with fewer than two axes.
    pub fn of(shape: &[usize]) -> Option<Self> {
        match *shape {
            [] | [_] => None,
            [d_input, d_output] => Some(Self { d_input, d_output, transposed: false }),
            [d_output, ref rest @ ..] => Some(Self { d_input: rest.iter().product(), d_output, transposed: true }),
        }
    }

    /// The parameter as a matrix: `[d_input, d_output]`.
    pub fn matrix<const D: usize>(&self, parameter: Tensor<D>) -> Tensor<2> {
        match self.transposed {
            false => parameter.reshape([self.d_input, self.d_output]),
            true => parameter.reshape([self.d_output, self.d_input]).transpose(),
        }
    }

    /// The inverse of [`matrix`](Self::matrix): `[d_input, d_output]` to the parameter's shape.
    pub fn restore<const D: usize>(&self, matrix: Tensor<2>, shape: [usize; D]) -> Tensor<D> {
        match self.transposed {
            false => matrix.reshape(shape),
            true => matrix.transpose().reshape(shape),
        }
    }

    /// Reshapes flat noise or a flat estimate to the parameter's shape, from the order of its matrix, or row-major without
    /// one.
    pub fn shape_flat<const D: usize>(flat: Tensor<1>, shape: [usize; D]) -> Tensor<D> {
        match Self::of(&shape) {
            Some(view) => view.restore(flat.reshape([view.d_input, view.d_output]), shape),
            None => flat.reshape(shape),
        }
    }
}
