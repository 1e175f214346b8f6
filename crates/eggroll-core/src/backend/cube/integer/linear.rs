//! Perturbed product of matrices: a cube takes a tile of the output, whatever members its rows belong to. `x·B` is summed
//! together with `x·W` from the same words of shared memory, for each tile of columns again.

use super::arithmetic::{
    MaterializedNoise, clip, floor_div, multiply, noise_start, perturbation, values_of_word, word,
};
use super::geometry::{ProductTile, WORDS};
use super::product::{multiply_tiles, zeros};
use cubecl::prelude::*;

/// Sizes of a product.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct LinearSizes {
    /// Rows of all members.
    pub rows: usize,
    pub rows_of_member: usize,
    pub d_input: usize,
    pub d_output: usize,
    pub divisor: i32,
}

#[cube(launch)]
pub(crate) fn linear_kernel<I: Int>(
    x: &[I],
    weight: &[I],
    held: &[I],
    y: &mut [I],
    sizes: LinearSizes,
    noise: MaterializedNoise,
    #[comptime] noisy: bool,
    #[comptime] tile: ProductTile,
    #[define(I)] _dtype: ElemType,
) {
    let tiles_across = sizes.d_output.div_ceil(tile.columns());
    let first_row = CUBE_POS / tiles_across * tile.rows();
    let first_column = CUBE_POS % tiles_across * tile.columns();
    if first_row >= sizes.rows {
        terminate!();
    }
    let mut a = Shared::<[i32]>::new_slice(comptime!(tile.rows() * WORDS));
    let mut b = Shared::<[i32]>::new_slice(comptime!(WORDS * tile.columns()));
    let mut projected = Shared::<[i32]>::new_slice(comptime!(tile.rows() * tile.rank_capacity));
    if comptime!(noisy) {
        let mut item = UNIT_POS as usize;
        while item < tile.rows() * noise.rank {
            projected[item] = 0i32;
            item += tile.units();
        }
    }
    let mut sums = zeros(tile);
    let mut depth = 0usize.runtime();
    while depth < sizes.d_input {
        bring_rows::<I>(&mut a, x, first_row, depth, &sizes, tile);
        bring_columns::<I>(&mut b, weight, first_column, depth, &sizes, tile);
        sync_cube();
        multiply_tiles(&a, &b, &mut sums, tile);
        if comptime!(noisy) {
            project::<I>(&mut projected, &a, held, &noise, first_row, depth, &sizes, tile);
        }
        sync_cube();
        depth += comptime!(WORDS * values_of_word(tile.packed));
    }

    let across = UNIT_POS as usize % tile.side;
    let down = UNIT_POS as usize / tile.side;
    #[unroll]
    for r in 0..tile.rows_each {
        let local = comptime!(r * tile.side) + down;
        let row = first_row + local;
        #[unroll]
        for c in 0..tile.columns_each {
            let column = first_column + comptime!(c * tile.side) + across;
            if row < sizes.rows && column < sizes.d_output {
                let mut sum = sums[comptime!(r * tile.columns_each + c)];
                if comptime!(noisy) {
                    let member = row / sizes.rows_of_member;
                    let (d_input, d_output, at) = (sizes.d_input, sizes.d_output, local * noise.rank);
                    sum += perturbation::<I>(&projected, at, held, &noise, member, d_input, d_output, column);
                }
                y[row * sizes.d_output + column] = I::cast_from(clip(floor_div(sum, sizes.divisor)));
            }
        }
    }
}

/// Rows of `x`, and behind the last row copies of it: `[rows, WORDS]`.
#[cube]
fn bring_rows<I: Int>(
    a: &mut Shared<[i32]>,
    x: &[I],
    first_row: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    while item < comptime!(tile.rows() * WORDS) {
        let row = (first_row + item / WORDS).min(sizes.rows - 1);
        let first = depth + item % WORDS * comptime!(values_of_word(tile.packed));
        a[item] = word::<I>(x, row * sizes.d_input, first, sizes.d_input, 1usize, tile.packed);
        item += tile.units();
    }
}

/// Columns of the weight, and behind the last column copies of it: `[WORDS, columns]`.
#[cube]
fn bring_columns<I: Int>(
    b: &mut Shared<[i32]>,
    weight: &[I],
    first_column: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    while item < comptime!(WORDS * tile.columns()) {
        let column = (first_column + item % tile.columns()).min(sizes.d_output - 1);
        let first = depth + item / tile.columns() * comptime!(values_of_word(tile.packed));
        b[item] = word::<I>(weight, column, first, sizes.d_input, sizes.d_output, tile.packed);
        item += tile.units();
    }
}

/// Adds this depth's part of `x·B` to `[rows, rank]`; an element is always the same unit's.
#[cube]
fn project<I: Int>(
    projected: &mut Shared<[i32]>,
    a: &Shared<[i32]>,
    held: &[I],
    noise: &MaterializedNoise,
    first_row: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    while item < tile.rows() * noise.rank {
        let local = item / noise.rank;
        let member = (first_row + local).min(sizes.rows - 1) / sizes.rows_of_member;
        let start = noise_start(noise, member) + item % noise.rank * sizes.d_input;
        let mut sum = projected[item];
        #[unroll]
        for w in 0..WORDS {
            let first = depth + comptime!(w * values_of_word(tile.packed));
            let factor = word::<I>(held, start, first, sizes.d_input, 1usize, tile.packed);
            sum = multiply(a[local * WORDS + w], factor, sum, tile.packed);
        }
        projected[item] = sum;
        item += tile.units();
    }
}
