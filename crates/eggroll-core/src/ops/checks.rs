//! Checks of the operands of perturbed operations, and the shapes of results.

use super::operands::{InputRows, LinearBias, LinearMembers};
#[cfg(feature = "cube")]
use super::window::Window;
#[cfg(feature = "cube")]
use burn::tensor::Shape;
use burn::tensor::Tensor;

/// Panics with the shapes if the operands of a perturbed linear do not fit.
#[track_caller]
pub(super) fn check_linear(x: &Tensor<2>, weight: &Tensor<2>, bias: &LinearBias, members: &LinearMembers) {
    let ([rows, width], [d_input, d_output]) = (x.dims(), weight.dims());
    assert!(
        width == d_input,
        "perturbed linear: the input {:?} does not fit the weight {:?}: {width} columns, but {d_input} rows",
        x.dims(),
        weight.dims()
    );
    if let Some(bias) = bias.dims() {
        assert!(bias == [d_output], "perturbed linear: the bias {bias:?} does not fit the weight {:?}", weight.dims());
    }
    if let LinearBias::Perturbed(_, _, source) = bias {
        source.check(members.pairs, d_output);
    }
    let count = members.pairs.members();
    assert!(count > 0, "perturbed linear: no members");
    assert!(
        members.input == InputRows::Shared || rows % count == 0,
        "perturbed linear: the {rows} rows of the input {:?} are not a multiple of {count} members; \
         expand shared rows to every member, or use the shared form",
        x.dims()
    );
}

/// Shape of the output of a linear operation, for backends that run it later.
#[cfg(feature = "cube")]
pub(super) fn linear_shape(x: &Shape, weight: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(x[0]), weight[1]])
}

/// Shape of the output of an embedding, for backends that run it later.
#[cfg(feature = "cube")]
pub(super) fn embedding_shape(weight: &Shape, indices: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(indices[0]), weight[1]])
}

/// Shape of patches, for backends that cut them out later.
#[cfg(feature = "cube")]
pub(super) fn patches_shape(images: &Shape, window: &Window) -> Shape {
    let [height, width] = window.positions([images[2], images[3]]);
    Shape::new([images[0] * height * width, images[1] * window.size()])
}
