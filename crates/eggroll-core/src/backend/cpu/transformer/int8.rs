//! Integers of a block of a weight, and their scales.

use super::nudge::BlockIntegers;
use crate::backend::cpu::integer::{self, COLUMNS, Panel};

/// A weight in blocks along the depth, a panel at a time.
pub(super) trait PanelBlocks {
    /// Blocks of every panel.
    fn count(&self) -> usize;

    /// Goes to a panel.
    fn open(&mut self, panel: usize);

    /// The integers of a block of the open panel, and a scale for each column.
    fn block(&self, index: usize) -> (Panel<'_>, &[f32; COLUMNS]);
}

/// Blocks of integers of a byte each.
pub(super) struct Bytes<'a> {
    blocks: &'a [Int8],
    panel: usize,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(blocks: &'a [Int8]) -> Self {
        Self { blocks, panel: 0 }
    }
}

impl PanelBlocks for Bytes<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.blocks.len()
    }

    #[inline(always)]
    fn open(&mut self, panel: usize) {
        self.panel = panel;
    }

    #[inline(always)]
    fn block(&self, index: usize) -> (Panel<'_>, &[f32; COLUMNS]) {
        let Int8 { packed, scales } = &self.blocks[index];
        (packed.panel(self.panel), &scales[self.panel])
    }
}

/// The integers of a block, and their scales.
pub(crate) struct Int8 {
    pub(super) packed: integer::Packed,
    /// A scale for each column, by panels.
    pub(super) scales: Vec<[f32; COLUMNS]>,
}

impl Int8 {
    /// Of some rows of a weight.
    pub(super) fn new(weight: &[f32], d_output: usize) -> Self {
        let mut largest = vec![0.0f32; d_output];
        for row in weight.chunks_exact(d_output) {
            for (largest, value) in largest.iter_mut().zip(row) {
                // Bits of finite positive numbers are ordered as they are, and infinity and NaN are above.
                *largest = f32::from_bits(largest.to_bits().max(value.abs().to_bits()));
            }
        }
        // A column that is not finite makes its products NaN.
        largest.iter_mut().filter(|largest| !largest.is_finite()).for_each(|largest| *largest = f32::NAN);
        let inverse: Vec<f32> = largest.iter().map(|l| if *l > 0.0 { 127.0 / l } else { 0.0 }).collect();
        let mut integers = Vec::with_capacity(weight.len());
        for row in weight.chunks_exact(d_output) {
            // Adding 1.5·2²³ rounds to the nearest integer, which is then the low bits.
            integers.extend(row.iter().zip(&inverse).map(|(w, inverse)| (w * inverse + 12_582_912.0).to_bits() as i8));
        }
        largest.iter_mut().for_each(|largest| *largest /= 127.0);
        Self::of(&integers, &largest)
    }

    /// Of integers `[rows, columns]`, and a scale for each column.
    pub(super) fn of(integers: &[i8], scales: &[f32]) -> Self {
        let (columns, rows) = (scales.len(), integers.len() / scales.len());
        let packed = integer::Packed::new(rows, columns, |k| &integers[k * columns..][..columns]);
        let of_panel = |of: &[f32]| {
            let mut scales = [0.0; COLUMNS];
            scales[..of.len()].copy_from_slice(of);
            scales
        };
        Self { packed, scales: scales.chunks(COLUMNS).map(of_panel).collect() }
    }

    /// The scale of a column.
    pub(super) fn scale(&self, column: usize) -> f32 {
        self.scales[column / COLUMNS][column % COLUMNS]
    }
}

impl BlockIntegers for &mut Int8 {
    fn columns(&self) -> usize {
        self.packed.columns()
    }

    fn scale(&self, column: usize) -> f32 {
        Int8::scale(self, column)
    }

    fn value(&self, row: usize, column: usize) -> i8 {
        self.packed.value(row, column)
    }

    fn set(&mut self, row: usize, column: usize, value: i8) {
        self.packed.set(row, column, value);
    }
}
