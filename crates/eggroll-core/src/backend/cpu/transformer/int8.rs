//! Integers of a block of a weight, and their scales.

use crate::backend::cpu::integer::{self, COLUMNS};

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
