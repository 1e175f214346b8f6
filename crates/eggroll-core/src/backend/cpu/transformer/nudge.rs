//! Weights of integers that learn: they are moved in whole steps, and what a step is short of is carried over.

use std::ops::RangeInclusive;

/// Steps of the integers in a unit of what is carried over.
const UNITS: f32 = 65_536.0;

/// The integers of a block `[rows, columns]`.
pub(super) trait BlockIntegers {
    /// Columns.
    fn columns(&self) -> usize;

    /// The scale of a column.
    fn scale(&self, column: usize) -> f32;

    /// An integer.
    fn value(&self, row: usize, column: usize) -> i8;

    /// Sets an integer.
    fn set(&mut self, row: usize, column: usize, value: i8);
}

/// Moves integers in `range` by `update : [rows, columns]`, with what is carried over in 2⁻¹⁶ steps; returns how many have moved.
pub(super) fn nudge(
    mut block: impl BlockIntegers,
    update: &[f32],
    carried: &mut [i16],
    range: &RangeInclusive<i8>,
) -> usize {
    let (lowest, highest) = (i32::from(*range.start()), i32::from(*range.end()));
    let columns = block.columns();
    // A block of zeros has no step; scales of Q4_0 may be negative.
    let inverse = |scale: f32| if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let inverse: Vec<f32> = (0..columns).map(|column| inverse(block.scale(column))).collect();
    let mut moved = 0;
    for (row, (update, carried)) in update.chunks_exact(columns).zip(carried.chunks_exact_mut(columns)).enumerate() {
        for (column, ((update, inverse), carried)) in update.iter().zip(&inverse).zip(carried).enumerate() {
            let wanted = update * inverse + f32::from(*carried) / UNITS;
            let steps = wanted.round_ties_even();
            let mut made = 0.0;
            if steps != 0.0 {
                let before = i32::from(block.value(row, column));
                // `as` saturates, and is 0 for what is no number.
                let after = before.saturating_add(steps as i32).clamp(lowest, highest);
                block.set(row, column, after as i8);
                moved += usize::from(after != before);
                made = (after - before) as f32;
            }
            // What cannot be moved is not carried over for ever.
            *carried = ((wanted - made) * UNITS).round_ties_even() as i16;
        }
    }
    moved
}
