//! Rows of activations as products of integers take them.

use crate::backend::cpu::integer::{OFFSET, ROWS};
use crate::simd::{Kernel, Simd, dispatch};

/// Rows of bytes, `q = round(x/s) + 128` with `s = max|x|/127` of each row.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    /// `[rows, stride]`, the rows of whole tiles; what is behind a row is multiplied by zeros.
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// `[rows]`, of whole tiles.
    pub(super) scales: Vec<f32>,
}

impl Quantized {
    /// Takes the rows of `x : [rows, d_input]`.
    pub(crate) fn fill(&mut self, x: &[f32], d_input: usize) {
        let rows = x.len() / d_input;
        self.stride = d_input.next_multiple_of(4);
        self.bytes.resize(rows.next_multiple_of(ROWS) * self.stride, 0);
        self.scales.resize(rows.next_multiple_of(ROWS), 0.0);
        dispatch(Fill { x, d_input, rows: self });
    }
}

struct Fill<'a> {
    x: &'a [f32],
    d_input: usize,
    rows: &'a mut Quantized,
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, d_input, rows: Quantized { bytes, stride, scales } } = self;
        for ((x, bytes), scale) in x.chunks_exact(d_input).zip(bytes.chunks_exact_mut(*stride)).zip(scales) {
            let largest = largest(x);
            // A row of zeros, or one that is not finite, has no scale: zeros stay zeros, and NaN is told by the product.
            *scale = if largest.is_finite() { largest / 127.0 } else { f32::NAN };
            let inverse = if largest > 0.0 && largest.is_finite() { 127.0 / largest } else { 0.0 };
            for (byte, x) in bytes.iter_mut().zip(x) {
                // Adding 1.5·2²³ rounds to the nearest integer, which is then the low bits.
                *byte = ((x * inverse + 12_582_912.0).to_bits() as u8) ^ OFFSET;
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
