//! Perturbed linear with low-rank noise in two launches, neither of which reads `y`. One finds `t = x·B` ([`linear_factors_kernel`]); the
//! product `x·W` adds `t·Aᵀ` and the bias where it is written.

use super::eligibility::runs;
use super::geometry::cube_count;
use super::launch::{NoiseOperand, empty};
use super::linear::{BiasKind, FactorLayout, LinearSizesLaunch, LinearTile, linear_factors_kernel};
use super::product::{PerturbedParts, perturbed_product};
use crate::rng::key::PairRange;
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Whether no more goes through memory than where a launch of its own reads and writes the product again.
///
/// In units of `y`, that launch reads and writes one each. Here every pair writes and reads its factors, `depth` rows for the
/// `2 · rows` that it has in `y`. Rows are a member's, so that chunks of a population decide alike.
pub(crate) fn is_cheaper(depth: usize, rows: usize) -> bool {
    depth <= 2 * rows
}

/// The operation for members that bring their own rows, or `None` where it cannot run; `bias_noise` is read if the tile's bias is perturbed.
pub(crate) fn linear(
    x: &CubeTensor,
    weight: &CubeTensor,
    (bias, bias_noise): (Option<&CubeTensor>, &NoiseOperand),
    noise: &NoiseOperand,
    factors: FactorLayout,
    pairs: PairRange,
    tile: LinearTile,
) -> Option<CubeTensor> {
    let [d_input, d_output] = [weight.meta.shape()[0], weight.meta.shape()[1]];
    let rows = x.meta.shape()[0] / pairs.members();
    let tile = tile.of_factors().on_strides(&[[x.meta.strides()[0], x.meta.strides()[1]]]);
    let tile = LinearTile { source: noise.kind, bias_source: bias_noise.kind, ..tile };
    let depth = factors.depth + usize::from(tile.bias == BiasKind::Perturbed);
    let largest = depth * (pairs.count as usize * d_output).max(x.meta.shape()[0]);
    if !runs(x, &tile.demand([d_input, d_output], factors.depth, largest)) {
        return None;
    }
    let [t, factors] = launch_factors(x, d_output, bias_noise, noise, factors, pairs, tile);
    let bias = bias.map(|bias| into_contiguous(bias.clone()));
    perturbed_product(x, weight, &PerturbedParts { t, factors, bias, pair_rows: 2 * rows, depth })
}

/// `t`, `[members · rows, depth]`, and the second factors, `[pairs · depth, d_output]`.
fn launch_factors(
    x: &CubeTensor,
    d_output: usize,
    bias_noise: &NoiseOperand,
    noise: &NoiseOperand,
    factors: FactorLayout,
    pairs: PairRange,
    tile: LinearTile,
) -> [CubeTensor; 2] {
    let [x_rows, d_input] = [x.meta.shape()[0], x.meta.shape()[1]];
    let (rows, depth) = (x_rows / pairs.members(), factors.depth + usize::from(tile.bias == BiasKind::Perturbed));
    let t = empty(x, [x_rows, depth], DType::F32);
    let written = empty(x, [pairs.count as usize * depth, d_output], x.dtype);
    let cubes = pairs.count as usize * (2 * rows).div_ceil(tile.rows);
    let sizes = LinearSizesLaunch::new(
        pairs.count as usize,
        pairs.first,
        rows,
        d_input,
        d_output,
        factors.depth,
        factors.starts[0],
        factors.starts[1],
        x.meta.strides()[0],
        x.meta.strides()[1],
        d_output,
        d_output,
    );
    linear_factors_kernel::launch(
        &x.client,
        cube_count(&x.client, cubes),
        tile.cube_dim(),
        tile.vector,
        x.clone().into_buffer_arg(),
        noise.clone().held(x).into_buffer_arg(),
        bias_noise.clone().held(x).into_buffer_arg(),
        t.clone().into_buffer_arg(),
        written.clone().into_buffer_arg(),
        noise.stream(),
        bias_noise.stream(),
        sizes,
        noise.scale,
        bias_noise.scale,
        tile,
        dtype_to_elem_type(x.dtype),
    );
    counters::add_kernel();
    counters::add_noise_bytes(written.meta.shape().num_elements() * written.dtype.size());
    [t, written]
}

#[cfg(test)]
mod tests;
