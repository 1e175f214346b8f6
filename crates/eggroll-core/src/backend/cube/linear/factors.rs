//! What a product needs to add a low-rank perturbation where it is written: `t = x·B`, with sign and scale, and the second factors
//! of the pairs, in memory. A cube takes some rows of one pair; noise stays in the registers of the unit that drew it.

use super::project::project_rows;
use super::sizes::{LinearSizes, PairRows, place};
use super::tile::{BiasKind, LinearTile};
use crate::backend::cube::geometry::COLUMNS;
use crate::backend::cube::noise::{PairNoise, SourceKind, Stream, pair_noise};
use crate::backend::cube::registers::{none_kept, part_of_walk, unit_noise};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// `t ← ±scale·x·B`, `[members · rows, depth]`, and `factors ← A`, `[pairs · depth, d_output]`, by the rows of `x` that members bring.
///
/// The depth is the rank, and one more for the noise of a perturbed bias: the last column of `t` is its `±scale`. Of a pair without
/// noise `t` is 0, and its factors are any numbers.
#[cube(launch)]
pub(crate) fn linear_factors_kernel<F: Float, N: Size>(
    x: &[Vector<F, N>],
    held: &[Vector<F, N>],
    bias_held: &[Vector<F, N>],
    t: &mut [f32],
    factors: &mut [Vector<F, N>],
    stream: Stream,
    bias_stream: Stream,
    sizes: LinearSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
    #[define(F)] _dtype: ElemType,
) {
    let place = place(&sizes, tile.rows, false);
    if place.pair >= sizes.pairs {
        terminate!();
    }
    let number = sizes.first_pair + place.pair as u32;
    let drawn = pair_noise(stream, number, tile.source);
    let bias_drawn = pair_noise(bias_stream, number, tile.bias_source);
    let (scale, bias_scale) = (scale * drawn.loud, bias_scale * bias_drawn.loud);

    let mut projected = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.rank_capacity));
    let mut work = Shared::<[f32]>::new_slice(comptime!(tile.work_len()));
    project_rows::<F, N>(x, &mut projected, &mut work, held, &drawn, &place, &sizes, tile);
    write_t(t, &projected, &place, &sizes, scale, bias_scale, tile);

    let depth = sizes.depth + comptime!((tile.bias == BiasKind::Perturbed) as usize);
    let (to, len) = (place.pair * depth * sizes.d_output, sizes.depth * sizes.d_output);
    write_run::<F, N>(factors, to, held, &drawn, sizes.second_factor, len, &place, tile, tile.source);
    if comptime!(tile.bias == BiasKind::Perturbed) {
        write_run::<F, N>(
            factors,
            to + len,
            bias_held,
            &bias_drawn,
            0usize,
            sizes.d_output,
            &place,
            tile,
            tile.bias_source,
        );
    }
}

/// The cube's rows of `t`; rows of the second member have the other sign.
#[cube]
fn write_t(
    t: &mut [f32],
    projected: &Shared<[f32]>,
    place: &PairRows,
    sizes: &LinearSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
) {
    let depth = sizes.depth + comptime!((tile.bias == BiasKind::Perturbed) as usize);
    let mut value = UNIT_POS as usize;
    while value < tile.rows * depth {
        let (row, k) = (value / depth, value % depth);
        let of_pair = place.first_row + row;
        if of_pair < place.pair_rows {
            let mut deviation = bias_scale;
            if k < sizes.depth {
                deviation = scale * projected[row * sizes.depth + k];
            }
            let at = (place.x_first + of_pair) * depth + k;
            t[at] = select(of_pair < sizes.rows, deviation, -deviation);
        }
        value += tile.units as usize;
    }
}

/// Writes `len` elements of a pair's noise, from element `begin` on; the cubes of the pair share them.
#[cube]
fn write_run<F: Float, N: Size>(
    factors: &mut [Vector<F, N>],
    to: usize,
    held: &[Vector<F, N>],
    drawn: &PairNoise,
    begin: usize,
    len: usize,
    place: &PairRows,
    #[comptime] tile: LinearTile,
    #[comptime] source: SourceKind,
) {
    let (part, parts) = (place.first_row / tile.rows, place.pair_rows.div_ceil(tile.rows));
    let walk = part_of_walk(begin, len, part, parts, tile.units, tile.vector);
    let mut kept = none_kept(tile.vector);
    let mut noise = Array::<Vector<f32, N>>::new(COLUMNS);
    let mut group = walk.first;
    while group < walk.end {
        unit_noise::<Vector<F, N>, N>(&mut noise, &mut kept, held, drawn, group, walk.lane, tile.vector, source);
        #[unroll]
        for c in 0..COLUMNS {
            // Before the run this is far behind it.
            let element = group * GROUP + walk.lane + comptime!(c * BLOCKS) - begin;
            if comptime!(tile.vector > 1) || element < len {
                factors[(to + element) / tile.vector] = Vector::cast_from(noise[c]);
            }
        }
        group += 1usize;
    }
}
