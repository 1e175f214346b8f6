//! Votes and step in one launch: a cube sums the votes of all pairs for a tile of the parameter and moves it.

use super::arithmetic::{clip, put, values_of_word};
use super::geometry::{LANES, ProductTile, WORDS};
use super::product::{multiply_tiles, zeros};
use cubecl::prelude::*;

/// Sizes of the update of a matrix.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct UpdateSizes {
    pub pairs: usize,
    pub d_input: usize,
    pub d_output: usize,
    pub rank: usize,
}

/// `Z = Σ_q f_q·B_q·A_qᵀ` as a product of depth `pairs · rank`, and the step.
#[cube(launch)]
pub(crate) fn matrix_update_kernel<I: Int>(
    parameter: &[I],
    noise: &[I],
    scores: &[I],
    updated: &mut [I],
    sizes: UpdateSizes,
    limit: i32,
    #[comptime] signs: bool,
    #[comptime] tile: ProductTile,
    #[define(I)] _dtype: ElemType,
) {
    let tiles_across = sizes.d_output.div_ceil(tile.columns());
    let first_row = CUBE_POS / tiles_across * tile.rows();
    let first_column = CUBE_POS % tiles_across * tile.columns();
    if first_row >= sizes.d_input {
        terminate!();
    }
    let mut a = Shared::<[i32]>::new_slice(comptime!(tile.rows() * WORDS));
    let mut b = Shared::<[i32]>::new_slice(comptime!(WORDS * tile.columns()));
    let mut sums = zeros(tile);
    let mut depth = 0usize.runtime();
    while depth < sizes.pairs * sizes.rank {
        let mut item = UNIT_POS as usize;
        while item < comptime!(tile.rows() * WORDS) {
            // Rows side by side in memory are side by side in the cube.
            let (local, w) = (item % tile.rows(), item / tile.rows());
            let row = (first_row + local).min(sizes.d_input - 1);
            let first = depth + w * comptime!(values_of_word(tile.packed));
            a[local * WORDS + w] = votes::<I>(noise, scores, first, row, &sizes, false, signs, tile.packed);
            item += tile.units();
        }
        let mut item = UNIT_POS as usize;
        while item < comptime!(WORDS * tile.columns()) {
            let column = (first_column + item % tile.columns()).min(sizes.d_output - 1);
            let first = depth + item / tile.columns() * comptime!(values_of_word(tile.packed));
            b[item] = votes::<I>(noise, scores, first, column, &sizes, true, signs, tile.packed);
            item += tile.units();
        }
        sync_cube();
        multiply_tiles(&a, &b, &mut sums, tile);
        sync_cube();
        depth += comptime!(WORDS * values_of_word(tile.packed));
    }

    let across = UNIT_POS as usize % tile.side;
    let down = UNIT_POS as usize / tile.side;
    #[unroll]
    for r in 0..tile.rows_each {
        let row = first_row + comptime!(r * tile.side) + down;
        #[unroll]
        for c in 0..tile.columns_each {
            let column = first_column + comptime!(c * tile.side) + across;
            if row < sizes.d_input && column < sizes.d_output {
                let at = row * sizes.d_output + column;
                let vote = sums[comptime!(r * tile.columns_each + c)];
                updated[at] = I::cast_from(step(i32::cast_from(parameter[at]), vote, limit));
            }
        }
    }
}

/// A word of factor columns from `first` on, at one row of `B`, or of `A` times the score; 0 behind the last.
#[cube]
fn votes<I: Int>(
    noise: &[I],
    scores: &[I],
    first: usize,
    at: usize,
    sizes: &UpdateSizes,
    #[comptime] second: bool,
    #[comptime] signs: bool,
    #[comptime] packed: bool,
) -> i32 {
    let mut word = 0i32;
    #[unroll]
    for byte in 0..comptime!(values_of_word(packed)) {
        let column = first + byte;
        let pair = column / sizes.rank;
        if pair < sizes.pairs {
            let k = column % sizes.rank;
            let start = pair * sizes.rank * (sizes.d_input + sizes.d_output);
            let value = if comptime!(second) {
                let a = noise[start + sizes.rank * sizes.d_input + k * sizes.d_output + at];
                i32::cast_from(scores[pair]) * value_of(i32::cast_from(a), signs)
            } else {
                value_of(i32::cast_from(noise[start + k * sizes.d_input + at]), signs)
            };
            word = put(word, value, byte, packed);
        }
    }
    word
}

/// `Z = Σ_q f_q·n₀·n₁` of a vector, [`LANES`] elements for each cube, and the step.
#[cube(launch)]
pub(crate) fn vector_update_kernel<I: Int>(
    parameter: &[I],
    noise: &[I],
    scores: &[I],
    updated: &mut [I],
    pairs: usize,
    elements: usize,
    limit: i32,
    #[comptime] signs: bool,
    #[comptime] units: usize,
    #[define(I)] _dtype: ElemType,
) {
    let first = CUBE_POS * LANES;
    if first >= elements {
        terminate!();
    }
    let mut partial = Shared::<[i32]>::new_slice(units);
    let element = (first + UNIT_POS as usize % LANES).min(elements - 1);
    let mut sum = 0i32;
    let mut pair = UNIT_POS as usize / LANES;
    while pair < pairs {
        let at = pair * 2 * elements + element;
        let product =
            value_of(i32::cast_from(noise[at]), signs) * value_of(i32::cast_from(noise[at + elements]), signs);
        sum += i32::cast_from(scores[pair]) * product;
        pair += comptime!(units / LANES);
    }
    partial[UNIT_POS as usize] = sum;
    sync_cube();
    if (UNIT_POS as usize) < LANES && first + (UNIT_POS as usize) < elements {
        let mut vote = 0i32;
        #[unroll]
        for slot in 0..comptime!(units / LANES) {
            vote += partial[comptime!(slot * LANES) + UNIT_POS as usize];
        }
        updated[element] = I::cast_from(step(i32::cast_from(parameter[element]), vote, limit));
    }
}

#[cube]
fn value_of(value: i32, #[comptime] signs: bool) -> i32 {
    if comptime!(signs) { value.clamp(-1i32, 1i32) } else { value }
}

/// A value after its vote, for a limit of 0 and more.
#[cube]
fn step(value: i32, vote: i32, limit: i32) -> i32 {
    let down = select(vote <= -limit, clip(value - 1i32), value);
    select(vote >= limit.max(1i32), clip(value + 1i32), down)
}
