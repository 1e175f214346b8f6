//! Integers of four bits, and their scales.

use super::int8::PanelBlocks;
use super::nudge::BlockIntegers;
use super::quantized::Blocks;
use crate::backend::cpu::integer::{COLUMNS, NIBBLE_ROWS, Nibbles, Panel, Unpacked};
use burn::tensor::f16;
use std::cell::Cell;

/// A weight `[d_input, d_output]` of integers from −8 to 7 in blocks of [`NIBBLE_ROWS`] inputs, with a scale for each column of each block: 20 bytes
/// for 32 weights.
pub(crate) struct Int4 {
    /// By panels.
    blocks: Vec<Block>,
    d_input: usize,
    d_output: usize,
}

/// A panel's columns of a block.
#[derive(Clone)]
struct Block {
    integers: Nibbles,
    /// Bits of f16.
    scales: [u16; COLUMNS],
}

/// A block for products.
#[derive(Clone)]
struct OpenBlock {
    integers: Unpacked,
    scales: [f32; COLUMNS],
}

// The rows that a weight is multiplied with share scales in the same blocks.
const _: () = assert!(NIBBLE_ROWS == Blocks::Plain.size());

thread_local! {
    static OPEN: Cell<Vec<OpenBlock>> = const { Cell::new(Vec::new()) };
}

impl Int4 {
    /// Of integers `[d_input, d_output]` and scales `[⌈d_input / 32⌉, d_output]`; `None` if they do not fit:
    /// integers from −8 to 7, scales that are exact in f16.
    pub(super) fn new(integers: &[i8], scales: &[f32], d_output: usize) -> Option<Self> {
        let exact = |scale: &f32| scale.is_finite() && f16::from_f32(*scale).to_f32() == *scale;
        if !scales.iter().all(exact) || !integers.iter().all(|integer| (-8..=7).contains(integer)) {
            return None;
        }
        let d_input = integers.len() / d_output;
        let zero = Block { integers: Nibbles::zeros(), scales: [0; COLUMNS] };
        let count = d_input.div_ceil(NIBBLE_ROWS) * d_output.div_ceil(COLUMNS);
        let mut weight = Self { blocks: vec![zero; count], d_input, d_output };
        for (row, integers) in integers.chunks_exact(d_output).enumerate() {
            for (column, integer) in integers.iter().enumerate() {
                weight.block(row / NIBBLE_ROWS).set(row % NIBBLE_ROWS, column, *integer);
            }
        }
        for (block, scales) in scales.chunks_exact(d_output).enumerate() {
            for (column, scale) in scales.iter().enumerate() {
                let index = weight.index(block, column);
                weight.blocks[index].scales[column % COLUMNS] = f16::from_f32(*scale).to_bits();
            }
        }
        Some(weight)
    }

    fn per_panel(&self) -> usize {
        self.d_input.div_ceil(NIBBLE_ROWS)
    }

    fn index(&self, block: usize, column: usize) -> usize {
        column / COLUMNS * self.per_panel() + block
    }

    /// Outputs.
    pub(super) fn columns(&self) -> usize {
        self.d_output
    }

    /// The integer of a row and column, and its scale.
    pub(super) fn value(&self, row: usize, column: usize) -> (i8, f32) {
        let block = &self.blocks[self.index(row / NIBBLE_ROWS, column)];
        let integer = block.integers.value(row % NIBBLE_ROWS, column % COLUMNS);
        (integer, finite_f16(block.scales[column % COLUMNS]))
    }

    /// A block, to be moved.
    pub(super) fn block(&mut self, number: usize) -> Int4Block<'_> {
        Int4Block { weight: self, number }
    }

    /// Number of integers that differ between two weights of the same shape.
    pub(super) fn differing(&self, other: &Self) -> usize {
        self.blocks.iter().zip(&other.blocks).map(|(a, b)| a.integers.differing(&b.integers)).sum()
    }

    /// The weight for a product.
    pub(super) fn unpacking(&self) -> Unpacking<'_> {
        Unpacking { weight: self, open: OPEN.take() }
    }
}

/// A block of a weight.
pub(super) struct Int4Block<'a> {
    weight: &'a mut Int4,
    number: usize,
}

impl Int4Block<'_> {
    fn of(&self, column: usize) -> &Block {
        &self.weight.blocks[self.weight.index(self.number, column)]
    }
}

impl BlockIntegers for Int4Block<'_> {
    fn columns(&self) -> usize {
        self.weight.d_output
    }

    fn scale(&self, column: usize) -> f32 {
        finite_f16(self.of(column).scales[column % COLUMNS])
    }

    fn value(&self, row: usize, column: usize) -> i8 {
        self.of(column).integers.value(row, column % COLUMNS)
    }

    fn set(&mut self, row: usize, column: usize, value: i8) {
        let index = self.weight.index(self.number, column);
        self.weight.blocks[index].integers.set(row, column % COLUMNS, value);
    }
}

/// A weight, of which one panel is unpacked, in memory that the thread keeps.
pub(super) struct Unpacking<'a> {
    weight: &'a Int4,
    open: Vec<OpenBlock>,
}

impl Drop for Unpacking<'_> {
    fn drop(&mut self) {
        OPEN.set(std::mem::take(&mut self.open));
    }
}

impl PanelBlocks for Unpacking<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.weight.per_panel()
    }

    #[inline(always)]
    fn open(&mut self, panel: usize) {
        let count = self.weight.per_panel();
        let blocks = &self.weight.blocks[panel * count..][..count];
        if self.open.len() < count {
            self.open.resize(count, OpenBlock { integers: Unpacked::zeros(), scales: [0.0; COLUMNS] });
        }
        for (block, to) in blocks.iter().zip(&mut self.open) {
            block.integers.unpack(&mut to.integers);
            for (to, bits) in to.scales.iter_mut().zip(&block.scales) {
                *to = finite_f16(*bits);
            }
        }
    }

    #[inline(always)]
    fn block(&self, index: usize) -> (Panel<'_>, &[f32; COLUMNS]) {
        let OpenBlock { integers, scales } = &self.open[index];
        let rows = NIBBLE_ROWS.min(self.weight.d_input - index * NIBBLE_ROWS);
        (integers.panel(rows), scales)
    }
}

/// The value of a finite f16: its exponent is moved from a bias of 15 to one of 127 by a product, which is exact for subnormal numbers too.
#[inline(always)]
fn finite_f16(bits: u16) -> f32 {
    const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * TWO_TO_112;
    f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_f16() {
        for bits in (0..=u16::MAX).filter(|bits| f16::from_bits(*bits).is_finite()) {
            assert_eq!(finite_f16(bits).to_bits(), f16::from_bits(bits).to_f32().to_bits(), "{bits:04x}");
        }
    }
}
