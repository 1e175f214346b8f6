//! Weights packed for products.

use super::bf16::Halves;
use super::quantized::BLOCK;
use super::rotation::rotate_back;
use crate::backend::cpu::integer::{self, COLUMNS};
use crate::backend::cpu::linear::packed;
use crate::backend::cpu::tile::Packed;

/// A weight `[d_input, d_output]`.
pub(crate) enum Matrix {
    /// As it is.
    F32(Packed),
    /// Rounded to bfloat16.
    Bf16(Halves),
    /// Rotated: `q = round(W/s)`, `s = max|W|/127` of each column of each block along the depth; NaN where a weight is not finite.
    Int8(Vec<Int8>),
}

/// The integers of a block, and their scales.
pub(crate) struct Int8 {
    pub(super) packed: integer::Packed,
    /// A scale for each column, by panels.
    pub(super) scales: Vec<[f32; COLUMNS]>,
}

impl Matrix {
    /// Of float32.
    pub(crate) fn f32(weight: &[f32], [d_input, d_output]: [usize; 2]) -> Self {
        Self::F32(packed(weight, d_input, d_output))
    }

    /// Of bfloat16.
    pub(crate) fn bf16(weight: &[f32], shape: [usize; 2]) -> Self {
        Self::Bf16(Halves::new(weight, shape))
    }

    /// Of int8, rotated, with a scale for each column of each block.
    pub(crate) fn int8(weight: &[f32], [_, d_output]: [usize; 2]) -> Self {
        let mut rotated = weight.to_vec();
        rotate_back(&mut rotated, d_output);
        Self::Int8(rotated.chunks(BLOCK * d_output).map(|weight| Int8::new(weight, d_output)).collect())
    }

    /// How many numbers of lower precision differ from those of another matrix of the same shape; `None` if one has none.
    pub(crate) fn differing(&self, other: &Self) -> Option<usize> {
        match (self, other) {
            (Self::Int8(a), Self::Int8(b)) => Some(a.iter().zip(b).map(|(a, b)| a.packed.differing(&b.packed)).sum()),
            (Self::Bf16(a), Self::Bf16(b)) => Some(a.differing(b)),
            _ => None,
        }
    }
}

impl Int8 {
    /// Of some rows of a weight.
    fn new(weight: &[f32], d_output: usize) -> Self {
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
        let packed = integer::Packed::new(weight.len() / d_output, d_output, |k| &integers[k * d_output..][..d_output]);
        let scales = largest.chunks(COLUMNS).map(|largest| {
            let mut scales = [0.0; COLUMNS];
            scales.iter_mut().zip(largest).for_each(|(scale, largest)| *scale = largest / 127.0);
            scales
        });
        Self { packed, scales: scales.collect() }
    }
}
