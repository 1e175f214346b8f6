//! Noise by element: `θ + s·σ·ε` for every member, and the noise itself.

use super::noise::{SourceKind, Stream, drawn_block, held_start, noise_of_block};
use crate::rng::NoiseDistribution;
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Writes `y : [2 · pairs, elements]`; a unit takes one block of one pair.
#[cube(launch)]
pub(crate) fn perturbed_vector_kernel<F: Float>(
    vector: &[F],
    held: &[F],
    y: &mut [F],
    stream: Stream,
    pairs: usize,
    first_pair: u32,
    scale: f32,
    #[comptime] kind: SourceKind,
    #[define(F)] _dtype: ElemType,
) {
    let elements = stream.elements;
    let blocks = elements.div_ceil(GROUP) * BLOCKS;
    let pair = ABSOLUTE_POS / blocks;
    if pair >= pairs {
        terminate!();
    }
    let block = ABSOLUTE_POS % blocks;
    let first = block / BLOCKS * GROUP + block % BLOCKS;
    let number = first_pair + pair as u32;
    let noise = noise_of_block::<F>(held, &stream, number, held_start(&stream, number, kind), block, kind);
    let plus = 2 * pair * elements;
    write_both::<F>(vector, y, plus, first, elements, scale * noise.0);
    write_both::<F>(vector, y, plus, first + BLOCKS, elements, scale * noise.1);
    write_both::<F>(vector, y, plus, first + 2 * BLOCKS, elements, scale * noise.2);
    write_both::<F>(vector, y, plus, first + 3 * BLOCKS, elements, scale * noise.3);
}

#[cube]
fn write_both<F: Float>(vector: &[F], y: &mut [F], plus: usize, element: usize, elements: usize, shift: f32) {
    if element < elements {
        let value = f32::cast_from(vector[element]);
        y[plus + element] = F::cast_from(value + shift);
        y[plus + elements + element] = F::cast_from(value - shift);
    }
}

/// Writes `noise : [pairs, elements]`; a unit takes one block of one pair.
#[cube(launch)]
pub(crate) fn noise_kernel<F: Float>(
    noise: &mut [F],
    stream: Stream,
    pairs: usize,
    first_pair: u32,
    #[comptime] distribution: NoiseDistribution,
    #[define(F)] _dtype: ElemType,
) {
    let elements = stream.elements;
    let blocks = elements.div_ceil(GROUP) * BLOCKS;
    let pair = ABSOLUTE_POS / blocks;
    if pair >= pairs {
        terminate!();
    }
    let block = ABSOLUTE_POS % blocks;
    let first = block / BLOCKS * GROUP + block % BLOCKS;
    let drawn = drawn_block(&stream, first_pair + pair as u32, block as u32, distribution);
    let to = pair * elements;
    write_one::<F>(noise, to, first, elements, drawn.0);
    write_one::<F>(noise, to, first + BLOCKS, elements, drawn.1);
    write_one::<F>(noise, to, first + 2 * BLOCKS, elements, drawn.2);
    write_one::<F>(noise, to, first + 3 * BLOCKS, elements, drawn.3);
}

#[cube]
pub(crate) fn write_one<F: Float>(to: &mut [F], start: usize, element: usize, elements: usize, value: f32) {
    if element < elements {
        to[start + element] = F::cast_from(value);
    }
}
