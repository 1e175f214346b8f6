//! Perturbed linear on the device, low-rank and dense: a cube takes a tile of one pair's rows, draws the noise into shared
//! memory as it needs it, and adds the perturbation to the product `x·W`. One launch, whatever the population.

use super::geometry::{BiasKind, LinearTile};
use super::noise::{Stream, bring_chunk, chunk_len, held_start};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Columns that a unit owns at a time: the elements of one Philox block, so that a chunk of noise covers a tile.
pub(crate) const COLUMNS: usize = GROUP / BLOCKS;

/// Sizes of a perturbed linear operation, and the distances between rows and columns in memory.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct LinearSizes {
    pub pairs: usize,
    pub first_pair: u32,
    /// Rows of one member.
    pub rows: usize,
    pub d_input: usize,
    pub d_output: usize,
    /// Rows of the second factor: the rank, or `d_input` for dense noise.
    pub depth: usize,
    pub x_row: usize,
    pub x_column: usize,
    pub base_row: usize,
    pub y_row: usize,
}

/// `y ← x·W + s·scale·t·E + bias`, where `E` is the second factor and `t = x·B`, or `E = ε` and `t = x`.
///
/// `y` holds `x·W` if members bring their own rows; for shared rows it is in `base`, and `y` is written.
#[cube(launch)]
pub(crate) fn linear_kernel<F: Float>(
    x: &[F],
    base: &[F],
    bias: &[F],
    held: &[F],
    bias_held: &[F],
    y: &mut [F],
    stream: Stream,
    bias_stream: Stream,
    sizes: LinearSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
    #[define(F)] _dtype: ElemType,
) {
    let pair_rows = pair_rows(&sizes, tile);
    let tiles = pair_rows.div_ceil(tile.rows);
    let local_pair = CUBE_POS / tiles;
    if local_pair >= sizes.pairs {
        terminate!();
    }
    let pair = sizes.first_pair + local_pair as u32;
    let first_row = CUBE_POS % tiles * tile.rows;
    // Rows behind the last are computed as copies of it and not written.
    let last_row = pair_rows - 1;
    let x_first = if comptime!(tile.shared) { 0usize.runtime() } else { local_pair * pair_rows };

    let mut noise = Shared::<[f32]>::new_slice(comptime!(chunk_len(tile.units)));
    let mut t = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.rank_capacity.max(1)));
    let held_at = held_start(&stream, pair, tile.source);
    let mut start = 0usize.runtime();
    if comptime!(tile.is_low_rank()) {
        start = sizes.depth * sizes.d_input;
        let mut partial = Shared::<[f32]>::new_slice(comptime!(tile.units as usize));
        let lanes = comptime!(tile.units as usize / tile.rows);
        let row = UNIT_POS as usize / lanes;
        let lane = UNIT_POS as usize % lanes;
        let x_at = (x_first + (first_row + row).min(last_row)) * sizes.x_row;
        let mut k = 0usize.runtime();
        while k < sizes.depth {
            let sum = project::<F>(x, x_at, k, &mut noise, held, held_at, &stream, pair, &sizes, tile);
            let sum = sum_lanes(&mut partial, sum, lanes);
            if lane == 0usize {
                t[row * sizes.depth + k] = sum;
            }
            sync_cube();
            k += 1usize;
        }
    }

    let mut first_column = 0usize.runtime();
    while first_column < sizes.d_output {
        let mut sums = Array::<f32>::new(comptime!(tile.rows * COLUMNS));
        #[unroll]
        for i in 0..comptime!(tile.rows * COLUMNS) {
            sums[i] = 0.0f32;
        }
        let width = (sizes.d_output - first_column).min(comptime!(chunk_len(tile.units)));
        // A narrow second factor is one run of the stream, a wide one has a run in each of its rows.
        let whole = width == sizes.d_output;
        let runs = select(whole, 1usize, sizes.depth);
        let run_len = select(whole, sizes.depth * sizes.d_output, width);
        let mut run = 0usize.runtime();
        while run < runs {
            let begin = start + run * sizes.d_output + first_column;
            let end = begin + run_len;
            let mut chunk = begin / GROUP * GROUP;
            while chunk < end {
                let groups = (end - chunk).div_ceil(GROUP);
                bring_chunk::<F>(&mut noise, held, &stream, pair, held_at, chunk / GROUP, groups, tile.source);
                sync_cube();
                let low = begin.max(chunk);
                let high = end.min(chunk + comptime!(chunk_len(tile.units)));
                let last_k = (high - 1 - start) / sizes.d_output;
                let mut k = (low - start) / sizes.d_output;
                while k <= last_k {
                    #[unroll]
                    for c in 0..COLUMNS {
                        let column = first_column + comptime!(c * tile.units as usize) + UNIT_POS as usize;
                        let element = start + k * sizes.d_output + column;
                        if column < sizes.d_output && element >= low && element < high {
                            let drawn = noise[element - chunk];
                            #[unroll]
                            for r in 0..tile.rows {
                                let factor = if comptime!(tile.is_low_rank()) {
                                    t[r * sizes.depth + k]
                                } else {
                                    let row = x_first + (first_row + r).min(last_row);
                                    f32::cast_from(x[row * sizes.x_row + k * sizes.x_column])
                                };
                                sums[r * COLUMNS + c] += factor * drawn;
                            }
                        }
                    }
                    k += 1usize;
                }
                sync_cube();
                chunk += comptime!(chunk_len(tile.units));
            }
            run += 1usize;
        }

        if comptime!(tile.bias == BiasKind::Perturbed) {
            let bias_at = held_start(&bias_stream, pair, tile.bias_source);
            let (group, groups) = (first_column / GROUP, width.div_ceil(GROUP));
            bring_chunk::<F>(&mut noise, bias_held, &bias_stream, pair, bias_at, group, groups, tile.bias_source);
            sync_cube();
        }
        #[unroll]
        for c in 0..COLUMNS {
            let local = comptime!(c * tile.units as usize) + UNIT_POS as usize;
            let column = first_column + local;
            if column < sizes.d_output {
                let plain = if comptime!(tile.bias == BiasKind::None) {
                    0.0f32.runtime()
                } else {
                    f32::cast_from(bias[column])
                };
                let shift = if comptime!(tile.bias == BiasKind::Perturbed) {
                    bias_scale * noise[local]
                } else {
                    0.0f32.runtime()
                };
                #[unroll]
                for r in 0..tile.rows {
                    let row = first_row + r;
                    if row < pair_rows {
                        let delta = scale * sums[r * COLUMNS + c] + shift;
                        if comptime!(tile.shared) {
                            let product = f32::cast_from(base[row * sizes.base_row + column]) + plain;
                            let plus = (local_pair * 2 * sizes.rows + row) * sizes.y_row + column;
                            y[plus] = F::cast_from(product + delta);
                            y[plus + sizes.rows * sizes.y_row] = F::cast_from(product - delta);
                        } else {
                            let at = (local_pair * pair_rows + row) * sizes.y_row + column;
                            let product = f32::cast_from(y[at]) + plain;
                            y[at] = F::cast_from(select(row < sizes.rows, product + delta, product - delta));
                        }
                    }
                }
            }
        }
        sync_cube();
        first_column += comptime!(chunk_len(tile.units));
    }
}

/// Rows of `x` that belong to one pair.
#[cube]
fn pair_rows(sizes: &LinearSizes, #[comptime] tile: LinearTile) -> usize {
    if comptime!(tile.shared) { sizes.rows } else { 2 * sizes.rows }
}

/// This unit's share of the dot product of a row of `x` with row `k` of the first factor.
#[cube]
fn project<F: Float>(
    x: &[F],
    x_at: usize,
    k: usize,
    noise: &mut Shared<[f32]>,
    held: &[F],
    held_at: usize,
    stream: &Stream,
    pair: u32,
    sizes: &LinearSizes,
    #[comptime] tile: LinearTile,
) -> f32 {
    let lanes = comptime!(tile.units as usize / tile.rows);
    let begin = k * sizes.d_input;
    let end = begin + sizes.d_input;
    let mut sum = 0.0f32;
    let mut chunk = begin / GROUP * GROUP;
    while chunk < end {
        let groups = (end - chunk).div_ceil(GROUP);
        bring_chunk::<F>(noise, held, stream, pair, held_at, chunk / GROUP, groups, tile.source);
        sync_cube();
        let high = end.min(chunk + comptime!(chunk_len(tile.units)));
        let mut element = begin.max(chunk) + UNIT_POS as usize % lanes;
        while element < high {
            sum += f32::cast_from(x[x_at + (element - begin) * sizes.x_column]) * noise[element - chunk];
            element += lanes;
        }
        sync_cube();
        chunk += comptime!(chunk_len(tile.units));
    }
    sum
}

/// Sum over each run of `lanes` units, a power of two; the first unit of a run gets it.
#[cube]
fn sum_lanes(partial: &mut Shared<[f32]>, value: f32, #[comptime] lanes: usize) -> f32 {
    let unit = UNIT_POS as usize;
    partial[unit] = value;
    sync_cube();
    let mut half = (comptime!(lanes / 2)).runtime();
    while half > 0usize {
        if unit % lanes < half {
            partial[unit] += partial[unit + half];
        }
        sync_cube();
        half /= 2usize;
    }
    partial[unit]
}
