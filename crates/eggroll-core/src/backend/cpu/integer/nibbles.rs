//! Integers of four bits: half the bytes, unpacked in front of a product.

use super::product::{Int8Line, Panel};
use super::tile::{COLUMNS, LINE, OFFSET, Sums};

/// Rows of a panel that are packed together.
pub(in crate::backend::cpu) const ROWS: usize = 32;
/// What makes the integers, from −8 to 7, unsigned.
const ZERO: u8 = 8;
/// Steps of four rows.
const STEPS: usize = ROWS / 4;

/// [`ROWS`] rows of a panel of integers from −8 to 7.
#[derive(Clone)]
#[repr(align(64))]
pub(in crate::backend::cpu) struct Nibbles {
    /// Two steps in each line: `q + 8` of the first in the low halves of its bytes, of the second in the high halves.
    lines: [[u8; LINE]; STEPS / 2],
    /// Sums of columns.
    sums: [i16; COLUMNS],
}

impl Nibbles {
    /// Of zeros.
    pub(in crate::backend::cpu) fn zeros() -> Self {
        Self { lines: [[ZERO << 4 | ZERO; LINE]; STEPS / 2], sums: [0; COLUMNS] }
    }

    /// The byte of a row and column, and the shift of its half.
    #[inline(always)]
    fn place(row: usize, column: usize) -> ([usize; 2], u32) {
        ([row / 8, column * 4 + row % 4], if row % 8 < 4 { 0 } else { 4 })
    }

    /// The integer of a row and column of the panel.
    #[inline(always)]
    pub(in crate::backend::cpu) fn value(&self, row: usize, column: usize) -> i8 {
        let ([line, byte], shift) = Self::place(row, column);
        (self.lines[line][byte] >> shift & 15) as i8 - ZERO as i8
    }

    /// Sets the integer of a row and column, from −8 to 7.
    pub(in crate::backend::cpu) fn set(&mut self, row: usize, column: usize, value: i8) {
        let ([line, byte], shift) = Self::place(row, column);
        self.sums[column] += i16::from(value) - i16::from(self.value(row, column));
        let byte = &mut self.lines[line][byte];
        *byte = *byte & !(15 << shift) | ((value + ZERO as i8) as u8 & 15) << shift;
    }

    /// Number of integers that differ.
    pub(in crate::backend::cpu) fn differing(&self, other: &Self) -> usize {
        let bytes = self.lines.as_flattened().iter().zip(other.lines.as_flattened());
        bytes.map(|(a, b)| usize::from((a ^ b) & 15 != 0) + usize::from((a ^ b) >> 4 != 0)).sum()
    }

    /// Unpacks the rows.
    #[inline(always)]
    pub(in crate::backend::cpu) fn unpack(&self, to: &mut Unpacked) {
        for (line, to) in self.lines.iter().zip(to.lines.as_chunks_mut::<2>().0) {
            let [first, second] = to;
            let halves = first.0.as_flattened_mut().iter_mut().zip(second.0.as_flattened_mut());
            for (byte, (first, second)) in line.iter().zip(halves) {
                *first = (byte & 15).wrapping_sub(ZERO) as i8;
                *second = (byte >> 4).wrapping_sub(ZERO) as i8;
            }
        }
        for (start, sum) in to.starts.iter_mut().zip(&self.sums) {
            *start = -i32::from(OFFSET) * i32::from(*sum);
        }
    }
}

/// Rows of a panel for products, a byte each.
#[derive(Clone)]
pub(in crate::backend::cpu) struct Unpacked {
    lines: [Int8Line; STEPS],
    starts: Sums,
}

impl Unpacked {
    /// Of zeros.
    pub(in crate::backend::cpu) fn zeros() -> Self {
        Self { lines: [Int8Line([[0; 4]; COLUMNS]); STEPS], starts: [0; COLUMNS] }
    }

    /// The first `rows` rows; what is behind them in the last step are zeros.
    #[inline(always)]
    pub(in crate::backend::cpu) fn panel(&self, rows: usize) -> Panel<'_> {
        Panel::new(&self.lines[..rows.div_ceil(4)], &self.starts)
    }
}
