//! Rows of a table. A unit processes one word of columns in a few rows of a pair and reads a word of `A` once for all of them.

use super::arithmetic::{MaterializedNoise, clip, noise_start, sign};
use super::packed_int8::{Form, Packing, packed, part_of, row_word, value};
use cubecl::prelude::*;

/// Rows that a unit takes.
pub(crate) const ROWS: usize = 4;

/// Sizes of an embedding.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct EmbeddingSizes {
    /// Rows that share their noise: the rows of both members of a pair.
    pub rows_of_pair: usize,
    /// Such runs of rows.
    pub pairs: usize,
    pub vocab: usize,
    pub width: usize,
    /// From one row of the table to the next.
    pub stride: usize,
}

/// How the operands are read, and the output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EmbeddingForms {
    pub weight: Form,
    pub held: Form,
    pub output: Form,
    pub packing: Packing,
    pub noisy: bool,
}

#[cube(launch)]
pub(crate) fn embedding_kernel<W: Int, H: Int, O: Int, T: Int>(
    tokens: &[T],
    weight: &[W],
    held: &[H],
    y: &mut [O],
    sizes: EmbeddingSizes,
    noise: MaterializedNoise,
    #[comptime] forms: EmbeddingForms,
    #[define(W)] _weight_elem: ElemType,
    #[define(H)] _held_elem: ElemType,
    #[define(O)] _output_elem: ElemType,
    #[define(T)] _token_elem: ElemType,
) {
    let each = comptime!(forms.packing.values());
    let words = sizes.width.div_ceil(each);
    let runs = sizes.rows_of_pair.div_ceil(ROWS);
    if ABSOLUTE_POS >= sizes.pairs * runs * words {
        terminate!();
    }
    let column = ABSOLUTE_POS % words * each;
    let run = ABSOLUTE_POS / words;
    let pair = run / runs;
    let first = run % runs * ROWS;
    let mut sums = Array::<i32>::new(comptime!(ROWS * forms.packing.values()));
    #[unroll]
    for i in 0..comptime!(ROWS * forms.packing.values()) {
        sums[i] = 0i32;
    }
    let start = noise_start(&noise, 2 * pair);
    if comptime!(forms.noisy) {
        let mut k = 0usize.runtime();
        while k < noise.rank {
            let row = start + noise.rank * sizes.vocab + k * sizes.width;
            let a = row_word::<H>(held, row, column, sizes.width, forms.held, forms.packing);
            #[unroll]
            for r in 0..ROWS {
                let row = pair * sizes.rows_of_pair + (first + r).min(sizes.rows_of_pair - 1);
                let token = u32::cast_from(tokens[row]) as usize;
                let b = value::<H>(held, start + k * sizes.vocab + token, forms.held);
                #[unroll]
                for j in 0..each {
                    sums[comptime!(r * each + j)] += b * part_of(a, j, forms.packing);
                }
            }
            k += 1usize;
        }
    }
    #[unroll]
    for r in 0..ROWS {
        if first + r < sizes.rows_of_pair {
            let row = pair * sizes.rows_of_pair + first + r;
            let token = u32::cast_from(tokens[row]) as usize;
            let table = token * sizes.stride;
            let word = row_word::<W>(weight, table, column, sizes.width, forms.weight, forms.packing);
            // The second half of a pair's rows is the second member's.
            let member = 2 * (first + r) / sizes.rows_of_pair;
            #[unroll]
            for j in 0..each {
                let mut value = part_of(word, j, forms.packing);
                if comptime!(forms.noisy) {
                    value += (sums[comptime!(r * each + j)] * sign(member)) >> noise.shift;
                }
                sums[comptime!(r * each + j)] = clip(value);
            }
            if comptime!(forms.output == Form::Word) {
                let at = comptime!(4 * r);
                let word = packed(sums[at], sums[comptime!(at + 1)], sums[comptime!(at + 2)], sums[comptime!(at + 3)]);
                y[(row * sizes.width + column) / 4] = O::cast_from(word);
            } else {
                #[unroll]
                for j in 0..each {
                    if column + j < sizes.width {
                        y[row * sizes.width + column + j] = O::cast_from(sums[comptime!(r * each + j)]);
                    }
                }
            }
        }
    }
}
