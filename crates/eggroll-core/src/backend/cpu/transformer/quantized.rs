//! Rows of activations as products of integers take them.

use super::rotation::rotate;
use crate::backend::cpu::integer::{OFFSET, ROWS};
use crate::simd::{Kernel, Simd, dispatch};

/// Elements along the depth that share a scale: outliers cost precision in their block only.
pub(super) const BLOCK: usize = 192;

/// Rows of bytes, rotated: `q = round(x/s) + 128` with `s = max|x|/127` of each [`BLOCK`] of a row.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    /// `[rows, stride]`, the rows of whole tiles; what is behind a row is multiplied by zeros.
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// `[blocks, rows]`, the rows of whole tiles.
    pub(super) scales: Vec<f32>,
    rotated: Vec<f32>,
}

impl Quantized {
    /// Takes the rows of `x : [rows, d_input]`.
    pub(crate) fn fill(&mut self, x: &[f32], d_input: usize) {
        let rows = (x.len() / d_input).next_multiple_of(ROWS);
        self.stride = d_input.next_multiple_of(4);
        self.bytes.resize(rows * self.stride, 0);
        self.scales.resize(rows * d_input.div_ceil(BLOCK), 0.0);
        dispatch(FillQuantized { x, d_input, rows: self });
    }

    /// Rows of whole tiles.
    pub(super) fn rows(&self) -> usize {
        self.bytes.len() / self.stride.max(1)
    }
}

struct FillQuantized<'a> {
    x: &'a [f32],
    d_input: usize,
    rows: &'a mut Quantized,
}

impl Kernel for FillQuantized<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let rows = self.rows.rows();
        let Self { x, d_input, rows: Quantized { bytes, stride, scales, rotated } } = self;
        for (row, (x, bytes)) in x.chunks_exact(d_input).zip(bytes.chunks_exact_mut(*stride)).enumerate() {
            rotated.clear();
            rotated.extend_from_slice(x);
            rotate(rotated, 1);
            for (block, (x, bytes)) in rotated.chunks(BLOCK).zip(bytes.chunks_mut(BLOCK)).enumerate() {
                let largest = largest(x);
                // Zeros stay zeros. What is not finite makes the row's products NaN.
                scales[block * rows + row] = if largest.is_finite() { largest / 127.0 } else { f32::NAN };
                let inverse = if largest > 0.0 && largest.is_finite() { 127.0 / largest } else { 0.0 };
                for (byte, x) in bytes.iter_mut().zip(x) {
                    // Adding 1.5·2²³ rounds to the nearest integer, which is then the low bits.
                    *byte = ((x * inverse + 12_582_912.0).to_bits() as u8) ^ OFFSET;
                }
            }
        }
    }
}

/// `max|x|`; NaN or infinite if an element is.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    // Bits of finite positive numbers are ordered as they are, and NaN and infinity are above.
    f32::from_bits(x.iter().fold(0, |largest, x| largest.max(x.to_bits() & 0x7fff_ffff)))
}
