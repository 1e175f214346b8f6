//! Rows in the format of a packed weight.

use super::bf16::HalfRows;
use super::quantized::Quantized;

/// The input of a product in addition to rows in float32.
#[derive(Debug)]
pub(crate) enum PackedRows {
    /// Nothing.
    F32,
    /// The rows in bfloat16.
    Bf16(HalfRows),
    /// The rows as integers.
    Int8(Quantized),
}

impl PackedRows {
    /// Takes the rows of `x : [rows, d_input]`.
    pub(crate) fn fill(&mut self, x: &[f32], d_input: usize) {
        match self {
            Self::F32 => {}
            Self::Bf16(rows) => rows.fill(x, d_input),
            Self::Int8(rows) => rows.fill(x, d_input),
        }
    }
}
