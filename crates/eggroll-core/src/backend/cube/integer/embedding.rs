//! Rows of a table.

use super::arithmetic::{MaterializedNoise, clip, noise_start, sign};
use cubecl::prelude::*;

/// Sizes of an embedding.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct EmbeddingSizes {
    /// Elements of the output.
    pub elements: usize,
    /// Rows of one member.
    pub rows: usize,
    pub vocab: usize,
    pub width: usize,
}

/// A unit writes one element.
#[cube(launch)]
pub(crate) fn embedding_kernel<I: Int, T: Int>(
    tokens: &[T],
    weight: &[I],
    held: &[I],
    y: &mut [I],
    sizes: EmbeddingSizes,
    noise: MaterializedNoise,
    #[comptime] noisy: bool,
    #[define(I)] _dtype: ElemType,
    #[define(T)] _token_dtype: ElemType,
) {
    if ABSOLUTE_POS >= sizes.elements {
        terminate!();
    }
    let row = ABSOLUTE_POS / sizes.width;
    let column = ABSOLUTE_POS % sizes.width;
    let token = u32::cast_from(tokens[row]) as usize;
    let mut value = i32::cast_from(weight[token * sizes.width + column]);
    if comptime!(noisy) {
        let member = row / sizes.rows;
        let b = noise_start(&noise, member) + token;
        let a = noise_start(&noise, member) + noise.rank * sizes.vocab + column;
        let mut sum = 0i32;
        let mut k = 0usize.runtime();
        while k < noise.rank {
            sum += i32::cast_from(held[b + k * sizes.vocab]) * i32::cast_from(held[a + k * sizes.width]);
            k += 1usize;
        }
        value += (sum * sign(member)) >> noise.shift;
    }
    y[ABSOLUTE_POS] = I::cast_from(clip(value));
}
