//! Votes and step in one launch: a cube sums the votes of all pairs for a tile of the parameter and moves it.

use super::arithmetic::clip;
use super::geometry::{LANES, ProductTile, WORDS};
use super::packed_int8::{Form, byte_of};
use super::product::{multiply_tiles, zeros};
use cubecl::prelude::*;

/// Sizes of the update of a matrix.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct UpdateSizes {
    pub pairs: usize,
    pub d_input: usize,
    pub d_output: usize,
    pub rank: usize,
    /// From one row of the parameter to the next.
    pub parameter_stride: usize,
    /// From one pair's noise to the next.
    pub noise_stride: usize,
}

/// `Z = Σ_q f_q·B_q·A_qᵀ` as a product of depth `pairs · rank`, and the step. Values are not packed: a score times a value may be no int8.
#[cube(launch)]
pub(crate) fn matrix_update_kernel<N: Int, I: Int>(
    parameter: &[I],
    noise: &[N],
    scores: &[I],
    updated: &mut [I],
    sizes: UpdateSizes,
    limit: i32,
    #[comptime] signs: bool,
    #[comptime] form: Form,
    #[comptime] tile: ProductTile,
    #[define(N)] _noise_elem: ElemType,
    #[define(I)] _elem: ElemType,
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
        bring_votes::<N, I>(&mut a, noise, scores, first_row, depth, &sizes, false, signs, form, tile);
        bring_votes::<N, I>(&mut b, noise, scores, first_column, depth, &sizes, true, signs, form, tile);
        sync_cube();
        multiply_tiles(&a, &b, &mut sums, tile);
        sync_cube();
        depth += WORDS;
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
                let value = i32::cast_from(parameter[row * sizes.parameter_stride + column]);
                let vote = sums[comptime!(r * tile.columns_each + c)];
                updated[row * sizes.d_output + column] = I::cast_from(step(value, vote, limit));
            }
        }
    }
}

/// Factor columns from `depth` on, at the rows `first..` of `B`, `[rows, WORDS]`, or of `A` times the scores, `[WORDS, columns]`; 0
/// behind the last column.
#[cube]
fn bring_votes<N: Int, I: Int>(
    to: &mut Shared<[i32]>,
    noise: &[N],
    scores: &[I],
    first: usize,
    depth: usize,
    sizes: &UpdateSizes,
    #[comptime] second: bool,
    #[comptime] signs: bool,
    #[comptime] form: Form,
    #[comptime] tile: ProductTile,
) {
    let side = comptime!(if second { tile.columns() } else { tile.rows() });
    let each = comptime!(if form == Form::Word { 4usize } else { 1usize });
    let len = if comptime!(second) { sizes.d_output } else { sizes.d_input };
    let mut item = UNIT_POS as usize;
    while item < comptime!(WORDS * side / each) {
        // Rows side by side in memory are side by side in the cube.
        let local = item % comptime!(side / each) * each;
        let step = item / comptime!(side / each);
        let (pair, k) = ((depth + step) / sizes.rank, (depth + step) % sizes.rank);
        let mut word = 0i32;
        let mut score = 1i32;
        if pair < sizes.pairs {
            let mut start = pair * sizes.noise_stride;
            if comptime!(second) {
                start += sizes.rank * sizes.d_input + k * sizes.d_output;
                score = i32::cast_from(scores[pair]);
            } else {
                start += k * sizes.d_input;
            }
            let at = (first + local).min((len - 1) / each * each);
            word = i32::cast_from(noise[(start + at) / each]);
        }
        #[unroll]
        for j in 0..each {
            let value = if comptime!(each == 4) { byte_of(word, j) } else { word };
            let value = score * value_of(value, signs);
            if comptime!(second) {
                to[step * side + local + j] = value;
            } else {
                to[(local + j) * WORDS + step] = value;
            }
        }
        item += tile.units();
    }
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
    noise_stride: usize,
    limit: i32,
    #[comptime] signs: bool,
    #[comptime] units: usize,
    #[define(I)] _elem: ElemType,
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
        let at = pair * noise_stride + element;
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
