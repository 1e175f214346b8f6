//! Perturbed linear on the device, low-rank and dense: a cube takes a tile of one pair's rows, draws the noise into shared
//! memory as it needs it, and adds the perturbation to the product `x·W`. One launch, whatever the population.

use super::geometry::{BiasKind, COLUMNS, LinearTile, chunk_len};
use super::noise::{PairNoise, Stream, bring_chunk, pair_noise};
use super::reduce::{Fold, fold_lanes};
use crate::rng::normal::GROUP;
use cubecl::prelude::*;

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
    /// Where the first factor starts in a pair's noise; dense noise has none.
    pub first_factor: usize,
    /// Where the second factor starts in a pair's noise.
    pub second_factor: usize,
    pub x_row: usize,
    pub x_column: usize,
    pub base_row: usize,
    pub y_row: usize,
}

/// What one cube works on: some rows of one pair.
#[derive(CubeType, Clone, Copy)]
struct Place {
    /// The pair, counted from the first of the launch.
    pair: usize,
    /// Rows of the pair.
    pair_rows: usize,
    /// The first of the cube's rows within the pair.
    first_row: usize,
    /// The row of `x` that the pair begins with.
    x_first: usize,
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
    let pair_rows = if comptime!(tile.shared) { sizes.rows } else { 2 * sizes.rows };
    let tiles = pair_rows.div_ceil(tile.rows);
    let pair = CUBE_POS / tiles;
    if pair >= sizes.pairs {
        terminate!();
    }
    let x_first = if comptime!(tile.shared) { 0usize.runtime() } else { pair * pair_rows };
    let place = Place { pair, pair_rows, first_row: CUBE_POS % tiles * tile.rows, x_first };
    let number = sizes.first_pair + pair as u32;
    let drawn = pair_noise(stream, number, tile.source);
    let bias_drawn = pair_noise(bias_stream, number, tile.bias_source);

    let mut noise = Shared::<[f32]>::new_slice(comptime!(chunk_len(tile.units)));
    let mut t = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.rank_capacity.max(1)));
    if comptime!(tile.is_low_rank()) {
        project_rows::<F>(x, &mut t, &mut noise, held, &drawn, &place, &sizes, tile);
    }
    let mut first_column = 0usize.runtime();
    while first_column < sizes.d_output {
        let width = (sizes.d_output - first_column).min(comptime!(chunk_len(tile.units)));
        let mut sums = Array::<f32>::new(comptime!(tile.rows * COLUMNS));
        #[unroll]
        for i in 0..comptime!(tile.rows * COLUMNS) {
            sums[i] = 0.0f32;
        }
        add_columns::<F>(x, &t, &mut noise, held, &drawn, &place, &sizes, first_column, width, &mut sums, tile);
        if comptime!(tile.bias == BiasKind::Perturbed) {
            let (group, groups) = (first_column / GROUP, width.div_ceil(GROUP));
            bring_chunk::<F>(&mut noise, bias_held, &bias_drawn, group, groups, tile.bias_source);
            sync_cube();
        }
        write_columns::<F>(base, bias, &noise, y, &sums, &place, &sizes, first_column, scale, bias_scale, tile);
        sync_cube();
        first_column += comptime!(chunk_len(tile.units));
    }
}

/// A row of `x` for one of the cube's rows. Rows behind the last are computed as copies of it and not written.
#[cube]
fn x_start(place: &Place, row: usize, sizes: &LinearSizes) -> usize {
    (place.x_first + (place.first_row + row).min(place.pair_rows - 1)) * sizes.x_row
}

/// `t ← x·B`, `[rows of the tile, rank]`: a run of units for each row. Visible to all units after the next barrier.
#[cube]
fn project_rows<F: Float>(
    x: &[F],
    t: &mut Shared<[f32]>,
    noise: &mut Shared<[f32]>,
    held: &[F],
    drawn: &PairNoise,
    place: &Place,
    sizes: &LinearSizes,
    #[comptime] tile: LinearTile,
) {
    let lanes = comptime!(tile.lanes());
    let mut partial = Shared::<[f32]>::new_slice(comptime!(lanes.shared_len(tile.units)));
    let (row, lane) = (UNIT_POS as usize / lanes.count, UNIT_POS as usize % lanes.count);
    let x_at = x_start(place, row, sizes);
    let mut k = 0usize.runtime();
    while k < sizes.depth {
        let sum = project::<F>(x, x_at, k, noise, held, drawn, sizes, tile);
        let sum = fold_lanes(&mut partial, sum, lanes, Fold::Sum);
        if lane == 0usize {
            t[row * sizes.depth + k] = sum;
        }
        k += 1usize;
    }
}

/// This unit's share of the dot product of a row of `x` with row `k` of the first factor.
#[cube]
fn project<F: Float>(
    x: &[F],
    x_at: usize,
    k: usize,
    noise: &mut Shared<[f32]>,
    held: &[F],
    drawn: &PairNoise,
    sizes: &LinearSizes,
    #[comptime] tile: LinearTile,
) -> f32 {
    let lanes = comptime!(tile.lanes().count);
    let begin = sizes.first_factor + k * sizes.d_input;
    let end = begin + sizes.d_input;
    let mut sum = 0.0f32;
    let mut chunk = begin / GROUP * GROUP;
    while chunk < end {
        let groups = (end - chunk).div_ceil(GROUP);
        bring_chunk::<F>(noise, held, drawn, chunk / GROUP, groups, tile.source);
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

/// `sums += t·E` for `width` columns from `first_column` on, a chunk of noise at a time.
#[cube]
fn add_columns<F: Float>(
    x: &[F],
    t: &Shared<[f32]>,
    noise: &mut Shared<[f32]>,
    held: &[F],
    drawn: &PairNoise,
    place: &Place,
    sizes: &LinearSizes,
    first_column: usize,
    width: usize,
    sums: &mut Array<f32>,
    #[comptime] tile: LinearTile,
) {
    let start = sizes.second_factor;
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
            bring_chunk::<F>(noise, held, drawn, chunk / GROUP, groups, tile.source);
            sync_cube();
            let high = end.min(chunk + comptime!(chunk_len(tile.units)));
            add_chunk::<F>(x, t, &*noise, place, sizes, first_column, chunk, begin.max(chunk), high, sums, tile);
            sync_cube();
            chunk += comptime!(chunk_len(tile.units));
        }
        run += 1usize;
    }
}

/// Adds the elements `low..high` of a pair's noise, which lie in the chunk that starts with element `chunk`.
#[cube]
fn add_chunk<F: Float>(
    x: &[F],
    t: &Shared<[f32]>,
    noise: &Shared<[f32]>,
    place: &Place,
    sizes: &LinearSizes,
    first_column: usize,
    chunk: usize,
    low: usize,
    high: usize,
    sums: &mut Array<f32>,
    #[comptime] tile: LinearTile,
) {
    let start = sizes.second_factor;
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
                        f32::cast_from(x[x_start(place, r, sizes) + k * sizes.x_column])
                    };
                    sums[r * COLUMNS + c] += factor * drawn;
                }
            }
        }
        k += 1usize;
    }
}

/// Writes this unit's columns of the cube's rows; `noise` holds the bias's noise if it is perturbed.
#[cube]
fn write_columns<F: Float>(
    base: &[F],
    bias: &[F],
    noise: &Shared<[f32]>,
    y: &mut [F],
    sums: &Array<f32>,
    place: &Place,
    sizes: &LinearSizes,
    first_column: usize,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
) {
    #[unroll]
    for c in 0..COLUMNS {
        let local = comptime!(c * tile.units as usize) + UNIT_POS as usize;
        let column = first_column + local;
        if column < sizes.d_output {
            let plain =
                if comptime!(tile.bias == BiasKind::None) { 0.0f32.runtime() } else { f32::cast_from(bias[column]) };
            let shift =
                if comptime!(tile.bias == BiasKind::Perturbed) { bias_scale * noise[local] } else { 0.0f32.runtime() };
            #[unroll]
            for r in 0..tile.rows {
                if place.first_row + r < place.pair_rows {
                    let delta = scale * sums[r * COLUMNS + c] + shift;
                    write_row::<F>(base, y, place, sizes, place.first_row + r, column, plain, delta, tile);
                }
            }
        }
    }
}

/// Writes `product + plain ± delta`: for shared rows to both members, otherwise to the member that the row belongs to.
#[cube]
fn write_row<F: Float>(
    base: &[F],
    y: &mut [F],
    place: &Place,
    sizes: &LinearSizes,
    row: usize,
    column: usize,
    plain: f32,
    delta: f32,
    #[comptime] tile: LinearTile,
) {
    if comptime!(tile.shared) {
        let product = f32::cast_from(base[row * sizes.base_row + column]) + plain;
        let plus = (place.pair * 2 * sizes.rows + row) * sizes.y_row + column;
        y[plus] = F::cast_from(product + delta);
        y[plus + sizes.rows * sizes.y_row] = F::cast_from(product - delta);
    } else {
        let at = (place.pair * place.pair_rows + row) * sizes.y_row + column;
        let product = f32::cast_from(y[at]) + plain;
        y[at] = F::cast_from(select(row < sizes.rows, product + delta, product - delta));
    }
}
