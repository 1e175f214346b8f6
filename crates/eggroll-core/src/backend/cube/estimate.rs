//! `Σ_q w_q·c·B_q·A_qᵀ` and `Σ_q w_q·σ·ε_q`, the noise drawn again where it is summed.
//!
//! Few outputs and many pairs would leave the device idle. So the pairs are split into runs that are summed side by
//! side, `[splits, …]`, and added up by the caller.

use super::geometry::{COLUMNS, DEPTH, EstimateTile, SIDE};
use super::noise::{SourceKind, Stream, go_to, held_start, noise_of_block, pair_noise};
use super::registers::{none_kept, unit_noise};
use super::vector::write_one;
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Sizes of a low-rank estimate.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct EstimateSizes {
    pub first_pair: u32,
    pub pairs: usize,
    pub pairs_per_split: usize,
    pub d_input: usize,
    pub d_output: usize,
    pub rank: usize,
}

/// Writes `sums : [splits, d_input, d_output]`, a tile for each cube.
#[cube(launch)]
pub(crate) fn low_rank_estimate_kernel<F: Float>(
    weights: &[f32],
    held: &[F],
    sums: &mut [f32],
    stream: Stream,
    sizes: EstimateSizes,
    scale: f32,
    #[comptime] tile: EstimateTile,
    #[define(F)] _dtype: ElemType,
) {
    let tiles_across = sizes.d_output.div_ceil(SIDE);
    let tiles = sizes.d_input.div_ceil(SIDE) * tiles_across;
    let split = CUBE_POS / tiles;
    let first_pair = split * sizes.pairs_per_split;
    if first_pair >= sizes.pairs {
        terminate!();
    }
    let first_row = CUBE_POS % tiles / tiles_across * SIDE;
    let first_column = CUBE_POS % tiles % tiles_across * SIDE;
    let columns = (sizes.pairs - first_pair).min(sizes.pairs_per_split) * sizes.rank;

    let mut b = Shared::<[f32]>::new_slice(comptime!(DEPTH * SIDE));
    let mut a = Shared::<[f32]>::new_slice(comptime!(DEPTH * SIDE));
    let across = UNIT_POS as usize % tile.side;
    let down = UNIT_POS as usize / tile.side;
    let mut values = Array::<f32>::new(comptime!(tile.each * tile.each));
    #[unroll]
    for i in 0..comptime!(tile.each * tile.each) {
        values[i] = 0.0f32;
    }
    let mut column = 0usize.runtime();
    while column < columns {
        // One item is one block of one factor column's part; a part that starts inside a group ends in the next.
        let mut item = UNIT_POS as usize;
        while item < comptime!(DEPTH * 2 * tile.groups * BLOCKS) {
            let step = item / comptime!(2 * tile.groups * BLOCKS);
            let second = item / comptime!(tile.groups * BLOCKS) % 2 == 1usize;
            let block = item % comptime!(tile.groups * BLOCKS);
            // Behind the last column stands a copy of it, with weight 0.
            let at = (column + step).min(columns - 1);
            let (turn, k) =
                if comptime!(tile.rank_one) { (at, 0usize.runtime()) } else { (at / sizes.rank, at % sizes.rank) };
            let pair = first_pair + turn;
            let start = if second {
                sizes.rank * sizes.d_input + k * sizes.d_output + first_column
            } else {
                k * sizes.d_input + first_row
            };
            let group = start / GROUP + block / BLOCKS;
            if group * GROUP < start + SIDE {
                let number = sizes.first_pair + pair as u32;
                let held_at = held_start(&stream, number, tile.source);
                let stream_block = group * BLOCKS + block % BLOCKS;
                let noise = noise_of_block::<F>(held, &stream, number, held_at, stream_block, tile.source);
                let noise = counted(noise, tile.signs);
                let weight = select(column + step < columns, scale * weights[pair], 0.0f32);
                let element = group * GROUP + block % BLOCKS;
                let to = step * SIDE;
                if second {
                    keep(&mut a, to, start, element, weight * noise.0);
                    keep(&mut a, to, start, element + BLOCKS, weight * noise.1);
                    keep(&mut a, to, start, element + 2 * BLOCKS, weight * noise.2);
                    keep(&mut a, to, start, element + 3 * BLOCKS, weight * noise.3);
                } else {
                    keep(&mut b, to, start, element, noise.0);
                    keep(&mut b, to, start, element + BLOCKS, noise.1);
                    keep(&mut b, to, start, element + 2 * BLOCKS, noise.2);
                    keep(&mut b, to, start, element + 3 * BLOCKS, noise.3);
                }
            }
            item += comptime!(tile.units() as usize);
        }
        sync_cube();
        #[unroll]
        for step in 0..DEPTH {
            #[unroll]
            for r in 0..tile.each {
                let factor = b[comptime!(step * SIDE + r * tile.side) + down];
                #[unroll]
                for c in 0..tile.each {
                    values[r * tile.each + c] += factor * a[comptime!(step * SIDE + c * tile.side) + across];
                }
            }
        }
        sync_cube();
        column += DEPTH;
    }
    #[unroll]
    for r in 0..tile.each {
        let row = first_row + r * tile.side + down;
        #[unroll]
        for c in 0..tile.each {
            let column = first_column + c * tile.side + across;
            if row < sizes.d_input && column < sizes.d_output {
                sums[(split * sizes.d_input + row) * sizes.d_output + column] = values[r * tile.each + c];
            }
        }
    }
}

/// Four elements, or their signs.
#[cube]
fn counted(four: (f32, f32, f32, f32), #[comptime] signs: bool) -> (f32, f32, f32, f32) {
    if comptime!(signs) { (sign(four.0), sign(four.1), sign(four.2), sign(four.3)) } else { four }
}

/// −1, 0 or 1.
#[cube]
pub(crate) fn sign(value: f32) -> f32 {
    select(value > 0.0f32, 1.0f32, select(value < 0.0f32, -1.0f32, 0.0f32))
}

/// Keeps an element of a stream that lies in the part from `start` on.
#[cube]
fn keep(part: &mut Shared<[f32]>, to: usize, start: usize, element: usize, value: f32) {
    if element >= start && element < start + SIDE {
        part[to + element - start] = value;
    }
}

/// Writes `sums : [splits, elements]`; a unit takes a lane of `groups` groups in one run of pairs. How many these are depends on the
/// distribution and not on the source, so that sums have the same order from every source.
#[cube(launch)]
pub(crate) fn dense_estimate_kernel<F: Float>(
    weights: &[f32],
    held: &[F],
    sums: &mut [f32],
    stream: Stream,
    first_pair: u32,
    pairs: usize,
    pairs_per_split: usize,
    scale: f32,
    #[comptime] kind: SourceKind,
    #[comptime] groups: usize,
    #[define(F)] _dtype: ElemType,
) {
    let elements = stream.elements;
    let units = elements.div_ceil(GROUP).div_ceil(groups) * BLOCKS;
    let split = ABSOLUTE_POS / units;
    let mut pair = split * pairs_per_split;
    if pair >= pairs {
        terminate!();
    }
    let end = (pair + pairs_per_split).min(pairs);
    let (lane, first) = (ABSOLUTE_POS % BLOCKS, ABSOLUTE_POS % units / BLOCKS * groups);
    let mut of = pair_noise(stream, first_pair, kind);
    let mut noise = Array::<Vector<f32, Const<1>>>::new(COLUMNS);
    let mut own = Array::<f32>::new(comptime!(groups * COLUMNS));
    #[unroll]
    for i in 0..comptime!(groups * COLUMNS) {
        own[i] = 0.0f32;
    }
    while pair < end {
        go_to(&mut of, first_pair + pair as u32, kind);
        let weight = scale * weights[pair] * of.loud;
        let mut kept = none_kept(1usize);
        #[unroll]
        for j in 0..groups {
            unit_noise::<F, Const<1>>(&mut noise, &mut kept, held, &of, first + j, lane, 1usize, kind);
            #[unroll]
            for c in 0..COLUMNS {
                own[comptime!(j * COLUMNS + c)] += weight * noise[c].extract(0usize);
            }
        }
        pair += 1usize;
    }
    #[unroll]
    for i in 0..comptime!(groups * COLUMNS) {
        let element = (first + comptime!(i / COLUMNS)) * GROUP + lane + comptime!(i % COLUMNS * BLOCKS);
        write_one::<f32>(sums, split * elements, element, elements, own[i]);
    }
}
