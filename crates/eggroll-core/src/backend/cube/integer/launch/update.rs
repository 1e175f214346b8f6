//! Updates by votes.

use crate::arithmetic::integer::Votes;
use crate::backend::cube::geometry::cube_count;
use crate::backend::cube::integer::geometry::{LANES, ProductTile};
use crate::backend::cube::integer::operands::{Operand, plain};
use crate::backend::cube::integer::update::{UpdateSizesLaunch, matrix_update_kernel, vector_update_kernel};
use crate::backend::cube::launch::empty;
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

/// The update of a matrix.
pub(crate) fn matrix_update(
    parameter: CubeTensor,
    noise: Operand,
    scores: CubeTensor,
    rank: usize,
    votes: Votes,
    limit: i32,
    tile: ProductTile,
) -> CubeTensor {
    let dtype = parameter.dtype;
    let (parameter, scores) = (Operand::new(parameter, dtype), plain(scores, dtype));
    let [d_input, d_output] = parameter.shape;
    let (updated, client) = (empty(&parameter.tensor, [d_input, d_output], dtype), parameter.tensor.client.clone());
    let steps = if rank > 1 { [d_input, d_output] } else { [0, 0] };
    let noise = noise.aligned(&[rank * d_input, steps[0], steps[1]]);
    let sizes = UpdateSizesLaunch::new(scores.meta.shape()[0], d_input, d_output, rank, parameter.stride, noise.stride);
    let (form, noise_elem) = (noise.form, noise.elem());
    let cubes = d_input.div_ceil(tile.rows()) * d_output.div_ceil(tile.columns());
    matrix_update_kernel::launch(
        &client,
        cube_count(&client, cubes),
        tile.cube_dim(),
        parameter.tensor.into_buffer_arg(),
        noise.tensor.into_buffer_arg(),
        scores.into_buffer_arg(),
        updated.clone().into_buffer_arg(),
        sizes,
        limit.max(0),
        votes == Votes::Signs,
        form,
        tile,
        noise_elem,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    updated
}

/// The update of a vector, by cubes of `units` units.
pub(crate) fn vector_update(
    parameter: CubeTensor,
    noise: Operand,
    scores: CubeTensor,
    votes: Votes,
    limit: i32,
    units: u32,
) -> CubeTensor {
    let dtype = parameter.dtype;
    let (parameter, scores) = (into_contiguous(parameter), plain(scores, dtype));
    let (elements, client) = (parameter.meta.shape().num_elements(), parameter.client.clone());
    let mut updated = empty(&parameter, [elements], dtype);
    updated.meta = parameter.meta.clone();
    vector_update_kernel::launch(
        &client,
        cube_count(&client, elements.div_ceil(LANES)),
        CubeDim::new_1d(units),
        parameter.into_buffer_arg(),
        noise.tensor.into_buffer_arg(),
        scores.clone().into_buffer_arg(),
        updated.clone().into_buffer_arg(),
        scores.meta.shape()[0],
        elements,
        noise.stride,
        limit.max(0),
        votes == Votes::Signs,
        units as usize,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    updated
}
