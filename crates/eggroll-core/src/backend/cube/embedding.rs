//! Rows of perturbed matrices on the device: a cube takes some rows of one pair. With low-rank noise it draws the second factor once for
//! all of them. One launch for any population.

use super::geometry::{COLUMNS, EmbeddingTile};
use super::noise::{PairNoise, Stream, element_of, noise_of_block, pair_noise};
use super::registers::{none_kept, unit_noise, walk};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Sizes of a perturbed embedding.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct EmbeddingSizes {
    pub pairs: usize,
    pub first_pair: u32,
    /// Rows of one member.
    pub rows: usize,
    /// Rows of the matrix.
    pub count: usize,
    pub d_model: usize,
    /// The distance between rows of the matrix in memory.
    pub weight_row: usize,
    /// Rows of the second factor: the rank, or 1 for dense noise.
    pub depth: usize,
    /// Where the second factor starts in a pair's noise; 0 for dense noise.
    pub second_factor: usize,
}

/// What one cube works on: some rows of one pair.
#[derive(CubeType, Clone, Copy)]
struct PairRows {
    pair: usize,
    first_row: usize,
    /// Rows of this cube.
    rows: usize,
}

/// `y[row] ← W[k] + s·scale·Σ_j B[j, k]·A[j]`, or `W[k] + s·scale·ε[k]`, for the index `k` of every row.
#[cube(launch)]
pub(crate) fn embedding_kernel<F: Float, I: Int, N: Size>(
    weight: &[Vector<F, N>],
    indices: &[I],
    held: &[F],
    y: &mut [Vector<F, N>],
    stream: Stream,
    sizes: EmbeddingSizes,
    scale: f32,
    #[comptime] tile: EmbeddingTile,
    #[define(F)] _dtype: ElemType,
    #[define(I)] _int: ElemType,
) {
    let pair_rows = if comptime!(tile.shared) { sizes.rows } else { 2 * sizes.rows };
    let tiles = pair_rows.div_ceil(tile.rows);
    let pair = CUBE_POS / tiles;
    if pair >= sizes.pairs {
        terminate!();
    }
    let first_row = CUBE_POS % tiles * tile.rows;
    let place = PairRows { pair, first_row, rows: (pair_rows - first_row).min(tile.rows) };
    let drawn = pair_noise(stream, sizes.first_pair + pair as u32, tile.source);
    let scale = scale * drawn.loud;
    let first_index = if comptime!(tile.shared) { first_row } else { pair * pair_rows + first_row };
    if comptime!(tile.is_low_rank()) {
        let mut chosen = Shared::<[u32]>::new_slice(tile.rows);
        let mut b = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.rank_capacity));
        choose::<F, I>(indices, held, &mut chosen, &mut b, &drawn, first_index, &place, &sizes, tile);
        low_rank_rows::<F, N>(weight, held, y, &chosen, &b, &drawn, &place, &sizes, scale, tile);
    } else {
        let index = index_at::<I>(indices, first_index, &sizes);
        dense_row::<F, N>(weight, held, y, index, &drawn, &place, &sizes, scale, tile);
    }
}

/// An index behind the last row must not lead out of memory.
#[cube]
fn index_at<I: Int>(indices: &[I], at: usize, sizes: &EmbeddingSizes) -> usize {
    usize::cast_from(indices[at]).min(sizes.count - 1)
}

/// The indices of the cube's rows, and `b[k, row]`, their elements of the first factor, each drawn by one unit. Visible after the next
/// barrier.
#[cube]
fn choose<F: Float, I: Int>(
    indices: &[I],
    held: &[F],
    chosen: &mut Shared<[u32]>,
    b: &mut Shared<[f32]>,
    drawn: &PairNoise,
    first_index: usize,
    place: &PairRows,
    sizes: &EmbeddingSizes,
    #[comptime] tile: EmbeddingTile,
) {
    let mut item = UNIT_POS as usize;
    while item < sizes.depth * tile.rows {
        let (k, row) = (item / tile.rows, item % tile.rows);
        if row < place.rows {
            let index = index_at::<I>(indices, first_index + row, sizes);
            if k == 0usize {
                chosen[row] = index as u32;
            }
            b[item] = element_of::<F>(held, drawn, k * sizes.count + index, tile.source);
        }
        item += comptime!(tile.units as usize);
    }
}

/// The cube's rows, a part of the columns at a time, whose second factors are in shared memory for all rows.
#[cube]
fn low_rank_rows<F: Float, N: Size>(
    weight: &[Vector<F, N>],
    held: &[F],
    y: &mut [Vector<F, N>],
    chosen: &Shared<[u32]>,
    b: &Shared<[f32]>,
    drawn: &PairNoise,
    place: &PairRows,
    sizes: &EmbeddingSizes,
    scale: f32,
    #[comptime] tile: EmbeddingTile,
) {
    let mut a = Shared::<[f32]>::new_slice(comptime!(tile.rank_capacity * tile.columns));
    let (across, down) = comptime!((tile.across(), tile.units as usize / tile.across()));
    let mut first_column = 0usize.runtime();
    while first_column < sizes.d_model {
        let width = (sizes.d_model - first_column).min(tile.columns);
        bring_second::<F>(&mut a, held, drawn, sizes, first_column, width, tile);
        sync_cube();
        let mut column = UNIT_POS as usize % across * tile.vector;
        while column < width {
            let mut row = UNIT_POS as usize / across;
            while row < place.rows {
                let mut sum = Vector::<f32, N>::new(0.0f32);
                let mut k = 0usize.runtime();
                while k < sizes.depth {
                    let noise = second_at::<N>(&a, k, column, tile);
                    sum += Vector::<f32, N>::new(b[k * tile.rows + row]) * noise;
                    k += 1usize;
                }
                let to = first_column + column;
                let value = weight[(chosen[row] as usize * sizes.weight_row + to) / tile.vector];
                let delta = Vector::<f32, N>::new(scale) * sum;
                write_both::<F, N>(y, sizes, place, row, to, Vector::cast_from(value), delta, tile);
                row += down;
            }
            column += comptime!(tile.across() * tile.vector);
        }
        sync_cube();
        first_column += tile.columns;
    }
}

/// `a[k, ..width] ←` the columns from `first_column` on of every row of the second factor, a block for a unit at a time.
#[cube]
fn bring_second<F: Float>(
    a: &mut Shared<[f32]>,
    held: &[F],
    drawn: &PairNoise,
    sizes: &EmbeddingSizes,
    first_column: usize,
    width: usize,
    #[comptime] tile: EmbeddingTile,
) {
    // A row may start inside a group, and so touch one more.
    let blocks = comptime!((tile.columns / GROUP + 1) * BLOCKS);
    let mut item = UNIT_POS as usize;
    while item < sizes.depth * blocks {
        let (k, block) = (item / blocks, item % blocks);
        let begin = sizes.second_factor + k * sizes.d_model + first_column;
        let block = begin / GROUP * BLOCKS + block;
        if block / BLOCKS * GROUP < begin + width {
            let four = noise_of_block::<F>(held, &drawn.stream, drawn.pair, drawn.start, block, tile.source);
            // Before the first column this is far behind the last.
            let column = block / BLOCKS * GROUP + block % BLOCKS - begin;
            let to = k * tile.columns;
            keep(a, to, column, width, four.0);
            keep(a, to, column + BLOCKS, width, four.1);
            keep(a, to, column + 2 * BLOCKS, width, four.2);
            keep(a, to, column + 3 * BLOCKS, width, four.3);
        }
        item += comptime!(tile.units as usize);
    }
}

#[cube]
fn keep(a: &mut Shared<[f32]>, to: usize, column: usize, width: usize, value: f32) {
    if column < width {
        a[to + column] = value;
    }
}

#[cube]
fn second_at<N: Size>(a: &Shared<[f32]>, k: usize, column: usize, #[comptime] tile: EmbeddingTile) -> Vector<f32, N> {
    let mut noise = Vector::<f32, N>::empty();
    #[unroll]
    for i in 0..tile.vector {
        noise.insert(i, a[k * tile.columns + column + i]);
    }
    noise
}

/// The cube's row of a matrix with dense noise, each block in the registers of the unit that draws it. Vectors have one element here.
#[cube]
fn dense_row<F: Float, N: Size>(
    weight: &[Vector<F, N>],
    held: &[F],
    y: &mut [Vector<F, N>],
    index: usize,
    drawn: &PairNoise,
    place: &PairRows,
    sizes: &EmbeddingSizes,
    scale: f32,
    #[comptime] tile: EmbeddingTile,
) {
    let begin = index * sizes.d_model;
    let walk = walk(begin, sizes.d_model, tile.units, 1usize);
    let mut kept = none_kept(1usize);
    let mut noise = Array::<Vector<f32, N>>::new(COLUMNS);
    let mut group = walk.first;
    while group < walk.end {
        unit_noise::<F, N>(&mut noise, &mut kept, held, drawn, group, walk.lane, 1usize, tile.source);
        #[unroll]
        for c in 0..COLUMNS {
            // Before the first column this is far behind the last.
            let column = group * GROUP + walk.lane + comptime!(c * BLOCKS) - begin;
            if column < sizes.d_model {
                let value = Vector::cast_from(weight[index * sizes.weight_row + column]);
                let delta = Vector::<f32, N>::new(scale) * noise[c];
                write_both::<F, N>(y, sizes, place, 0usize.runtime(), column, value, delta, tile);
            }
        }
        group += 1usize;
    }
}

/// Writes `value ± delta`: for shared indices to both members, otherwise to the member that the row belongs to.
#[cube]
fn write_both<F: Float, N: Size>(
    y: &mut [Vector<F, N>],
    sizes: &EmbeddingSizes,
    place: &PairRows,
    row: usize,
    column: usize,
    value: Vector<f32, N>,
    delta: Vector<f32, N>,
    #[comptime] tile: EmbeddingTile,
) {
    let row = place.first_row + row;
    let plus = (place.pair * 2 * sizes.rows + row) * sizes.d_model + column;
    if comptime!(tile.shared) {
        y[plus / tile.vector] = Vector::cast_from(value + delta);
        y[(plus + sizes.rows * sizes.d_model) / tile.vector] = Vector::cast_from(value - delta);
    } else {
        let sign = select(row < sizes.rows, 1.0f32, -1.0f32);
        y[plus / tile.vector] = Vector::cast_from(value + Vector::new(sign) * delta);
    }
}
