//! The integer transformer: a language model of bytes that attends, in int8 throughout.
//!
//! The arithmetic of the layers differs from the recurrent model. Sums are rounded to nearest: the noise of the two members of a pair is
//! exactly antithetic. The residual stream is rescaled after every addition: it neither saturates nor vanishes.
//! [`eggroll_core::ops::integer`] with [`Rounding::Nearest`] has the formulas.

mod attention;
mod embedding;
mod feed_forward;
mod linear;
mod model;
mod norm;
mod state;

pub use attention::{Attention, AttentionConfig};
pub use embedding::{TiedEmbedding, TiedEmbeddingConfig};
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use linear::{RoundedLinear, RoundedLinearConfig};
pub use model::{Transformer, TransformerBlock, TransformerConfig};
pub use norm::{MeanNorm, MeanNormConfig};
pub use state::TransformerState;

use super::{constant_vector, normal_matrix, perturbed, vector_noise};
use burn::module::Param;
use burn::tensor::{Int, Tensor};
use eggroll_core::ops::integer::{Rounding, Vector, add};

/// Observer of activations, by their name in a part.
type Observe<'a, const D: usize> = &'a mut dyn FnMut(&str, &Tensor<D, Int>);

/// A vector parameter for an operation on `rows` rows.
#[track_caller]
fn vector(parameter: &Param<Tensor<1, Int>>, rows: usize) -> Vector {
    Vector { values: parameter.val(), noise: vector_noise(parameter, rows) }
}

/// Rows of the last axis, by an operation on a matrix.
#[track_caller]
fn by_row<const D: usize>(
    input: Tensor<D, Int>,
    operation: impl FnOnce(Tensor<2, Int>) -> Tensor<2, Int>,
) -> Tensor<D, Int> {
    let mut dims = input.dims();
    let y = operation(input.reshape([dims[..D - 1].iter().product(), dims[D - 1]]));
    dims[D - 1] = y.dims()[1];
    y.reshape(dims)
}

/// `rescale(x + y)`
#[track_caller]
fn residual<const D: usize>(x: Tensor<D, Int>, y: Tensor<D, Int>) -> Tensor<D, Int> {
    by_row(x, |x| {
        let [rows, width] = x.dims();
        add(x, y.reshape([rows, width]), Rounding::Nearest)
    })
}
