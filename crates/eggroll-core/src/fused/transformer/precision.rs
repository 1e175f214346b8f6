//! Number formats of products.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number format of a packed weight, and of the rows that it is multiplied with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// float32.
    F32,
    /// bfloat16: weights and rows rounded to 8 significant bits, sums in float32. Half the bytes of float32 everywhere; faster than it where
    /// the processor has AVX512-BF16.
    Bf16,
    /// int8: weights and rows rotated by Hadamard matrices (QuaRot, arXiv 2404.00456), then rounded with a scale for each 192 inputs of a
    /// column or row. Sums are in int32.
    #[default]
    Int8,
    /// int8 as it is in ggml's Q8_0 and Q4_0: rounded with a scale for each 32 inputs of a column or row; sums in int32.
    #[serde(rename = "q8_0")]
    Q8_0,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::F32, Self::Bf16, Self::Int8, Self::Q8_0];
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Q8_0 => "q8_0",
        })
    }
}
