//! Weights packed for products.

use super::bf16::{Halves, rounded};
use super::int4::Int4;
use super::int8::Int8;
use super::nudge::nudge;
use super::quantized::Blocks;
use super::rotation::rotate_back;
use crate::backend::cpu::linear::packed;
use crate::backend::cpu::tile::Packed;
use std::ops::RangeInclusive;

/// A weight `[d_input, d_output]`.
pub(crate) enum Matrix {
    /// As it is.
    F32(Packed),
    /// Rounded to bfloat16.
    Bf16(Halves),
    /// In blocks along the depth: `q = round(W/s)`, `s = max|W|/127` of each column of each block; NaN where a weight is not finite.
    Int8(Blocks, Vec<Int8>),
    /// Integers of four bits in blocks of 32 along the depth, with a scale in f16 for each column of each block.
    Int4(Int4),
}

impl Matrix {
    /// Of float32.
    pub(crate) fn f32(weight: &[f32], [d_input, d_output]: [usize; 2]) -> Self {
        Self::F32(packed(weight, d_input, d_output))
    }

    /// Of bfloat16.
    pub(crate) fn bf16(weight: &[f32], shape: [usize; 2]) -> Self {
        Self::Bf16(Halves::new(weight, shape, rounded))
    }

    /// Of the bits of bfloat16 numbers.
    pub(crate) fn bf16_bits(bits: &[u16], shape: [usize; 2]) -> Self {
        Self::Bf16(Halves::new(bits, shape, |bits| bits))
    }

    /// Of int8, with a scale for each column of each block.
    pub(crate) fn int8(weight: &[f32], [_, d_output]: [usize; 2], form: Blocks) -> Self {
        let mut values = std::borrow::Cow::Borrowed(weight);
        if form == Blocks::Rotated {
            rotate_back(values.to_mut(), d_output);
        }
        Self::Int8(form, values.chunks(form.size() * d_output).map(|weight| Int8::new(weight, d_output)).collect())
    }

    /// Of integers `[d_input, d_output]` in `range`, with scales `[⌈d_input / 32⌉, d_output]`. They take four bits if they fit.
    pub(crate) fn blocks(integers: &[i8], scales: &[f32], d_output: usize, range: &RangeInclusive<i8>) -> Self {
        let form = Blocks::Plain;
        let four_bits =
            if *range.start() >= -8 && *range.end() <= 7 { Int4::new(integers, scales, d_output) } else { None };
        if let Some(weight) = four_bits {
            return Self::Int4(weight);
        }
        let parts = integers.chunks(form.size() * d_output).zip(scales.chunks_exact(d_output));
        Self::Int8(form, parts.map(|(integers, scales)| Int8::of(integers, scales)).collect())
    }

    /// The integers of a column of `d_input` rows, if they are not rotated, and the scale of each.
    pub(crate) fn column(&self, column: usize, d_input: usize) -> Option<impl Iterator<Item = (i8, f32)>> {
        if !matches!(self, Self::Int8(Blocks::Plain, _) | Self::Int4(_)) {
            return None;
        }
        Some((0..d_input).map(move |row| match self {
            Self::Int4(weight) => weight.value(row, column),
            Self::Int8(form, blocks) => {
                let block = &blocks[row / form.size()];
                (block.packed.value(row % form.size(), column), block.scale(column))
            }
            _ => unreachable!("formats without blocks have been left out"),
        }))
    }

    /// The bits of a column of `d_input` rows, in bfloat16.
    pub(crate) fn column_bits(&self, column: usize, d_input: usize) -> Option<impl Iterator<Item = u16>> {
        let Self::Bf16(halves) = self else { return None };
        Some(halves.column(column, d_input))
    }

    /// Moves bfloat16 numbers, or integers that are not rotated, by `update : [d_input, d_output]`, with what is carried over from move to move in 2⁻¹⁶
    /// steps; how many have moved.
    pub(crate) fn nudge(&mut self, update: &[f32], carried: &mut [i16], range: &RangeInclusive<i8>) -> Option<usize> {
        match self {
            Self::Bf16(halves) => Some(halves.nudge(update, carried)),
            Self::Int4(weight) => {
                let parts = by_blocks(update, carried, weight.columns()).enumerate();
                Some(parts.map(|(number, (update, carried))| nudge(weight.block(number), update, carried, range)).sum())
            }
            Self::Int8(Blocks::Plain, blocks) => {
                let parts = by_blocks(update, carried, blocks[0].packed.columns()).zip(blocks);
                Some(parts.map(|((update, carried), block)| nudge(block, update, carried, range)).sum())
            }
            _ => None,
        }
    }

    /// Number of lower-precision elements that differ between two matrices of the same shape; `None` if one has none.
    pub(crate) fn differing(&self, other: &Self) -> Option<usize> {
        match (self, other) {
            (Self::Int8(_, a), Self::Int8(_, b)) => {
                Some(a.iter().zip(b).map(|(a, b)| a.packed.differing(&b.packed)).sum())
            }
            (Self::Int4(a), Self::Int4(b)) => Some(a.differing(b)),
            (Self::Bf16(a), Self::Bf16(b)) => Some(a.differing(b)),
            _ => None,
        }
    }
}

/// A move of a weight in blocks of 32 rows, and what is carried over, block by block.
fn by_blocks<'a>(
    update: &'a [f32],
    carried: &'a mut [i16],
    columns: usize,
) -> impl Iterator<Item = (&'a [f32], &'a mut [i16])> {
    let each = Blocks::Plain.size() * columns;
    update.chunks(each).zip(carried.chunks_mut(each))
}
