//! Perturbed linear on the device, low-rank and dense. A cube takes a tile of one pair's rows, draws the noise as needed, and adds
//! the perturbation to the product `x·W`. One launch for any population.

mod chunks;
mod columns;
mod factors;
mod project;
mod sizes;
mod tile;
mod write;

use super::noise::{Stream, pair_noise};
use chunks::perturb_chunks;
use columns::perturb_columns;
use cubecl::prelude::*;
pub(crate) use factors::linear_factors_kernel;
use project::project_rows;
pub(crate) use sizes::LinearSizesLaunch;
use sizes::{LinearSizes, place};
pub(crate) use tile::{BiasKind, FactorLayout, LinearTile};

/// `y ← x·W + s·scale·t·E + bias`, where `E` is the second factor and `t = x·B`, or `E = ε` and `t = x`.
///
/// `y` holds `x·W` if members bring their own rows; for shared rows it is in `base`, and `y` is written.
#[cube(launch)]
pub(crate) fn linear_kernel<F: Float, N: Size>(
    x: &[Vector<F, N>],
    base: &[Vector<F, N>],
    bias: &[Vector<F, N>],
    held: &[Vector<F, N>],
    bias_held: &[Vector<F, N>],
    y: &mut [Vector<F, N>],
    stream: Stream,
    bias_stream: Stream,
    sizes: LinearSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
    #[define(F)] _dtype: ElemType,
) {
    let place = place(&sizes, tile.rows, tile.shared);
    if place.pair >= sizes.pairs {
        terminate!();
    }
    let number = sizes.first_pair + place.pair as u32;
    let drawn = pair_noise(stream, number, tile.source);
    let bias_drawn = pair_noise(bias_stream, number, tile.bias_source);
    let (scale, bias_scale) = (scale * drawn.loud, bias_scale * bias_drawn.loud);

    let mut t = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.rank_capacity.max(1)));
    let mut work = Shared::<[f32]>::new_slice(comptime!(tile.work_len()));
    if comptime!(tile.is_low_rank()) {
        project_rows::<F, N>(x, &mut t, &mut work, held, &drawn, &place, &sizes, tile);
    }
    if comptime!(tile.in_registers) {
        perturb_columns::<F, N>(
            x,
            base,
            bias,
            &t,
            held,
            bias_held,
            y,
            &drawn,
            &bias_drawn,
            &place,
            &sizes,
            scale,
            bias_scale,
            tile,
        );
    } else {
        perturb_chunks::<F, N>(
            x,
            base,
            bias,
            &t,
            &mut work,
            held,
            bias_held,
            y,
            &drawn,
            &bias_drawn,
            &place,
            &sizes,
            scale,
            bias_scale,
            tile,
        );
    }
}
