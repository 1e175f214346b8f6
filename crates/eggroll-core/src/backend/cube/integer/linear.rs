//! Perturbed product of matrices: a cube takes a tile of the output, whatever members its rows belong to. `x·B` is summed
//! together with `x·W` from the same words of shared memory, for each tile of columns again.

use super::arithmetic::{MaterializedNoise, noise_start, second_product};
use super::epilogue::{Epilogue, finished, rounded_projection};
use super::geometry::{ProductTile, WORDS};
use super::packed_int8::{Form, Packing, column_words, multiply, row_word, value};
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
    /// From one row of the input to the next.
    pub x_stride: usize,
    /// From one row of the weight to the next.
    pub weight_stride: usize,
    /// Where the factors of a pair's noise start: the one that the input meets, and the other.
    pub from: usize,
    pub to: usize,
    /// What sums are divided by, or shifted down by.
    pub divisor: i32,
}

/// How the operands are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinearForms {
    pub x: Form,
    pub weight: Form,
    pub held: Form,
    /// Whether the weight is given as its transpose.
    pub transposed: bool,
    pub noisy: bool,
}

#[cube(launch)]
pub(crate) fn linear_kernel<X: Int, W: Int, H: Int, I: Int, O: Int>(
    x: &[X],
    weight: &[W],
    held: &[H],
    bias: &[I],
    bias_held: &[I],
    y: &mut [O],
    sizes: LinearSizes,
    noise: MaterializedNoise,
    bias_noise: MaterializedNoise,
    #[comptime] forms: LinearForms,
    #[comptime] epilogue: Epilogue,
    #[comptime] tile: ProductTile,
    #[define(X)] _x_elem: ElemType,
    #[define(W)] _weight_elem: ElemType,
    #[define(H)] _held_elem: ElemType,
    #[define(I)] _elem: ElemType,
    #[define(O)] _output_elem: ElemType,
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
    if comptime!(forms.noisy) {
        let mut item = UNIT_POS as usize;
        while item < tile.rows() * noise.rank {
            projected[item] = 0i32;
            item += tile.units();
        }
    }
    let mut sums = zeros(tile);
    let mut depth = 0usize.runtime();
    while depth < sizes.d_input {
        bring_rows::<X>(&mut a, x, first_row, depth, &sizes, forms.x, tile);
        bring_columns::<W>(&mut b, weight, first_column, depth, &sizes, forms, tile);
        sync_cube();
        multiply_tiles(&a, &b, &mut sums, tile);
        if comptime!(forms.noisy) {
            project::<H>(&mut projected, &a, held, &noise, first_row, depth, &sizes, forms.held, tile);
        }
        sync_cube();
        depth += comptime!(WORDS * tile.packing.values());
    }
    if comptime!(forms.noisy && epilogue.rounds()) {
        // An element is the same unit's as in the sum.
        let mut item = UNIT_POS as usize;
        while item < tile.rows() * noise.rank {
            projected[item] = rounded_projection(projected[item]);
            item += tile.units();
        }
        sync_cube();
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
                let member = row / sizes.rows_of_member;
                let sum = sums[comptime!(r * tile.columns_each + c)];
                let mut second = 0i32;
                if comptime!(forms.noisy) {
                    let start = noise_start(&noise, member) + sizes.to;
                    let at = local * noise.rank;
                    second = second_product::<H>(
                        &projected,
                        at,
                        held,
                        start,
                        noise.rank,
                        sizes.d_output,
                        column,
                        forms.held,
                    );
                }
                let value = finished::<I>(
                    sum,
                    second,
                    &noise,
                    bias,
                    bias_held,
                    &bias_noise,
                    member,
                    column,
                    sizes.divisor,
                    epilogue,
                );
                y[row * sizes.d_output + column] = O::cast_from(value);
            }
        }
    }
}

/// Rows of `x`, and behind the last row copies of it: `[rows, WORDS]`. Behind the last value of a row stand zeros, which make what the
/// other factor has there count for nothing.
#[cube]
fn bring_rows<X: Int>(
    a: &mut Shared<[i32]>,
    x: &[X],
    first_row: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] form: Form,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    while item < comptime!(tile.rows() * WORDS) {
        let row = (first_row + item / WORDS).min(sizes.rows - 1);
        let first = depth + item % WORDS * comptime!(tile.packing.values());
        a[item] = row_word::<X>(x, row * sizes.x_stride, first, sizes.d_input, form, tile.packing);
        item += tile.units();
    }
}

/// Columns of the weight, and behind the last column copies of one: `[WORDS, columns]`.
#[cube]
fn bring_columns<W: Int>(
    b: &mut Shared<[i32]>,
    weight: &[W],
    first_column: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] forms: LinearForms,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    if comptime!(forms.transposed) {
        // Words side by side in memory are side by side in the cube.
        while item < comptime!(WORDS * tile.columns()) {
            let column = (first_column + item / WORDS).min(sizes.d_output - 1);
            let first = depth + item % WORDS * comptime!(tile.packing.values());
            let start = column * sizes.weight_stride;
            let word = row_word::<W>(weight, start, first, sizes.d_input, forms.weight, tile.packing);
            b[item % WORDS * tile.columns() + item / WORDS] = word;
            item += tile.units();
        }
    } else if comptime!(tile.packing == Packing::One) {
        while item < comptime!(WORDS * tile.columns()) {
            let column = (first_column + item % tile.columns()).min(sizes.d_output - 1);
            let row = (depth + item / tile.columns()).min(sizes.d_input - 1);
            b[item] = value::<W>(weight, row * sizes.weight_stride + column, forms.weight);
            item += tile.units();
        }
    } else {
        while item < comptime!(WORDS * tile.columns() / 4) {
            let column = item % comptime!(tile.columns() / 4) * 4;
            let w = item / comptime!(tile.columns() / 4);
            let words = column_words::<W>(
                weight,
                depth + 4 * w,
                sizes.d_input,
                sizes.weight_stride,
                first_column + column,
                sizes.d_output,
                forms.weight,
            );
            let at = w * tile.columns() + column;
            b[at] = words.0;
            b[at + 1] = words.1;
            b[at + 2] = words.2;
            b[at + 3] = words.3;
            item += tile.units();
        }
    }
}

/// Adds this depth's part of `x·B` to `[rows, rank]`; an element is always the same unit's.
#[cube]
fn project<H: Int>(
    projected: &mut Shared<[i32]>,
    a: &Shared<[i32]>,
    held: &[H],
    noise: &MaterializedNoise,
    first_row: usize,
    depth: usize,
    sizes: &LinearSizes,
    #[comptime] form: Form,
    #[comptime] tile: ProductTile,
) {
    let mut item = UNIT_POS as usize;
    while item < tile.rows() * noise.rank {
        let local = item / noise.rank;
        let member = (first_row + local).min(sizes.rows - 1) / sizes.rows_of_member;
        let start = noise_start(noise, member) + sizes.from + item % noise.rank * sizes.d_input;
        let mut sum = projected[item];
        #[unroll]
        for w in 0..WORDS {
            let first = depth + comptime!(w * tile.packing.values());
            let factor = row_word::<H>(held, start, first, sizes.d_input, form, tile.packing);
            sum = multiply(a[local * WORDS + w], factor, sum, tile.packing);
        }
        projected[item] = sum;
        item += tile.units();
    }
}
