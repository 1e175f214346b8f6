//! What a product needs to add a low-rank perturbation where it is written: `t = x·B`, with sign and scale, and the second factors
//! of the pairs, in memory. A cube takes some rows of one pair; noise stays in the registers of the unit that drew it.

use super::geometry::FactorTile;
use super::noise::{PairNoise, SourceKind, Stream, noise_of_block, pair_noise};
use super::reduce::{Fold, fold_lanes};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Sizes of a perturbed linear operation, and the distances between rows and columns of `x`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct FactorSizes {
    pub pairs: usize,
    pub first_pair: u32,
    /// Rows of one member.
    pub rows: usize,
    pub d_input: usize,
    pub d_output: usize,
    pub rank: usize,
    /// Where the factors start in a pair's noise.
    pub first_factor: usize,
    pub second_factor: usize,
    pub x_row: usize,
    pub x_column: usize,
}

/// What one cube works on: some rows of one pair.
#[derive(CubeType, Clone, Copy)]
struct Place {
    /// The pair, counted from the first of the launch.
    pair: usize,
    /// The cube's number among those of the pair, and how many these are.
    tile: usize,
    tiles: usize,
}

/// `t ← ±scale·x·B`, `[members · rows, depth]`, and `factors ← A`, `[pairs · depth, d_output]`, by the rows of `x` that members bring.
///
/// The depth is the rank, and one more for the noise of a perturbed bias: the last column of `t` is its `±scale`.
#[cube(launch)]
pub(crate) fn factors_kernel<F: Float>(
    x: &[F],
    held: &[F],
    bias_held: &[F],
    t: &mut [f32],
    factors: &mut [F],
    stream: Stream,
    bias_stream: Stream,
    sizes: FactorSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: FactorTile,
    #[define(F)] _dtype: ElemType,
) {
    let tiles = (2 * sizes.rows).div_ceil(tile.rows);
    let pair = CUBE_POS / tiles;
    if pair >= sizes.pairs {
        terminate!();
    }
    let place = Place { pair, tile: CUBE_POS % tiles, tiles };
    let number = sizes.first_pair + pair as u32;
    let drawn = pair_noise(stream, number, tile.source);
    project::<F>(x, t, held, &drawn, &place, &sizes, scale, bias_scale, tile);
    let depth = sizes.rank + comptime!(tile.bias.is_some() as usize);
    let to = pair * depth * sizes.d_output;
    write_run::<F>(factors, to, held, &drawn, sizes.second_factor, sizes.rank * sizes.d_output, &place, tile.source);
    if comptime!(tile.bias.is_some()) {
        let source = comptime!(tile.bias.unwrap());
        let drawn = pair_noise(bias_stream, number, source);
        let to = to + sizes.rank * sizes.d_output;
        write_run::<F>(factors, to, bias_held, &drawn, 0usize, sizes.d_output, &place, source);
    }
}

/// The cube's rows of `t`.
#[cube]
fn project<F: Float>(
    x: &[F],
    t: &mut [f32],
    held: &[F],
    drawn: &PairNoise,
    place: &Place,
    sizes: &FactorSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: FactorTile,
) {
    let mut partial = Shared::<[f32]>::new_slice(comptime!(tile.lanes().shared_len(tile.units)));
    let first_row = place.tile * tile.rows;
    let depth = sizes.rank + comptime!(tile.bias.is_some() as usize);
    let mut k = 0usize.runtime();
    while k < sizes.rank {
        let mut sums = Array::<f32>::new(tile.rows);
        #[unroll]
        for r in 0..tile.rows {
            sums[r] = 0.0f32;
        }
        let begin = sizes.first_factor + k * sizes.d_input;
        let end = begin + sizes.d_input;
        let mut block = begin / GROUP * BLOCKS + UNIT_POS as usize;
        while block / BLOCKS * GROUP < end {
            let four = block_of::<F>(held, drawn, block, tile.source);
            let element = block / BLOCKS * GROUP + block % BLOCKS;
            add::<F>(x, &mut sums, element, four.0, begin, end, first_row, place, sizes, tile);
            add::<F>(x, &mut sums, element + BLOCKS, four.1, begin, end, first_row, place, sizes, tile);
            add::<F>(x, &mut sums, element + 2 * BLOCKS, four.2, begin, end, first_row, place, sizes, tile);
            add::<F>(x, &mut sums, element + 3 * BLOCKS, four.3, begin, end, first_row, place, sizes, tile);
            block += tile.units as usize;
        }
        #[unroll]
        for r in 0..tile.rows {
            let sum = fold_lanes(&mut partial, sums[r], comptime!(tile.lanes()), Fold::Sum);
            write_t(t, first_row + r, k, depth, scale * sum, place, sizes);
        }
        k += 1usize;
    }
    if comptime!(tile.bias.is_some()) {
        #[unroll]
        for r in 0..tile.rows {
            write_t(t, first_row + r, sizes.rank, depth, bias_scale, place, sizes);
        }
    }
}

#[cube]
fn block_of<F: Float>(
    held: &[F],
    of: &PairNoise,
    block: usize,
    #[comptime] source: SourceKind,
) -> (f32, f32, f32, f32) {
    noise_of_block::<F>(held, &of.stream, of.pair, of.start, block, source)
}

/// Adds the products of one element of the first factor with its column of the cube's rows. Rows behind the last are computed as
/// copies of it and not written.
#[cube]
fn add<F: Float>(
    x: &[F],
    sums: &mut Array<f32>,
    element: usize,
    noise: f32,
    begin: usize,
    end: usize,
    first_row: usize,
    place: &Place,
    sizes: &FactorSizes,
    #[comptime] tile: FactorTile,
) {
    if element >= begin && element < end {
        let pair_rows = 2 * sizes.rows;
        #[unroll]
        for r in 0..tile.rows {
            let row = place.pair * pair_rows + (first_row + r).min(pair_rows - 1);
            sums[r] += f32::cast_from(x[row * sizes.x_row + (element - begin) * sizes.x_column]) * noise;
        }
    }
}

/// Writes `± value` for a row of the pair, by its first unit: positive for the rows of the first member.
#[cube]
fn write_t(t: &mut [f32], row: usize, k: usize, depth: usize, value: f32, place: &Place, sizes: &FactorSizes) {
    if UNIT_POS == 0u32 && row < 2 * sizes.rows {
        t[(place.pair * 2 * sizes.rows + row) * depth + k] = select(row < sizes.rows, value, -value);
    }
}

/// Writes `len` elements of a pair's noise, from element `begin` on; the cubes of the pair share them.
#[cube]
fn write_run<F: Float>(
    factors: &mut [F],
    to: usize,
    held: &[F],
    drawn: &PairNoise,
    begin: usize,
    len: usize,
    place: &Place,
    #[comptime] source: SourceKind,
) {
    let end = begin + len;
    let units = CUBE_DIM as usize;
    let mut block = begin / GROUP * BLOCKS + place.tile * units + UNIT_POS as usize;
    while block / BLOCKS * GROUP < end {
        let four = block_of::<F>(held, drawn, block, source);
        let element = block / BLOCKS * GROUP + block % BLOCKS;
        write_element::<F>(factors, to, element, four.0, begin, end);
        write_element::<F>(factors, to, element + BLOCKS, four.1, begin, end);
        write_element::<F>(factors, to, element + 2 * BLOCKS, four.2, begin, end);
        write_element::<F>(factors, to, element + 3 * BLOCKS, four.3, begin, end);
        block += place.tiles * units;
    }
}

#[cube]
fn write_element<F: Float>(factors: &mut [F], to: usize, element: usize, noise: f32, begin: usize, end: usize) {
    if element >= begin && element < end {
        factors[to + element - begin] = F::cast_from(noise);
    }
}
