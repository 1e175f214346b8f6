//! Activations quantized to int8.

use super::rotation::rotate;
use crate::backend::cpu::integer::{OFFSET, ROWS};
use crate::simd::{Kernel, Simd, dispatch};

/// Elements along the depth that share a scale: outliers cost precision in their block only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Many, [rotated](super::rotation).
    Rotated,
    /// 32, as they are: the blocks of ggml's Q8_0 and Q4_0.
    Plain,
}

impl Blocks {
    /// Elements of a block.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Rotated => 192,
            Self::Plain => 32,
        }
    }
}

/// Rows of bytes: `q = round(x/s) + 128` with `s = max|x|/127` of each block of a row.
#[derive(Debug)]
pub(crate) struct Quantized {
    form: Blocks,
    /// `[rows, stride]`, the rows of whole tiles; what is behind a row is multiplied by zeros.
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// `[blocks, rows]`, the rows of whole tiles.
    pub(super) scales: Vec<f32>,
    rotated: Vec<f32>,
}

impl Quantized {
    /// No rows yet.
    pub(crate) fn new(form: Blocks) -> Self {
        Self { form, bytes: Vec::new(), stride: 0, scales: Vec::new(), rotated: Vec::new() }
    }

    /// Takes the rows of `x : [rows, d_input]`.
    pub(crate) fn fill(&mut self, x: &[f32], d_input: usize) {
        let rows = (x.len() / d_input).next_multiple_of(ROWS);
        self.stride = d_input.next_multiple_of(4);
        self.bytes.resize(rows * self.stride, 0);
        self.scales.resize(rows * d_input.div_ceil(self.form.size()), 0.0);
        dispatch(FillQuantized { x, d_input, rows: self });
    }

    /// Which elements share a scale.
    pub(crate) fn form(&self) -> Blocks {
        self.form
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
        let Self { x, d_input, rows: Quantized { form, bytes, stride, scales, rotated } } = self;
        let size = form.size();
        for (row, (x, bytes)) in x.chunks_exact(d_input).zip(bytes.chunks_exact_mut(*stride)).enumerate() {
            rotated.clear();
            rotated.extend_from_slice(x);
            if *form == Blocks::Rotated {
                rotate(rotated, 1);
            }
            for (block, (x, bytes)) in rotated.chunks(size).zip(bytes.chunks_mut(size)).enumerate() {
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
