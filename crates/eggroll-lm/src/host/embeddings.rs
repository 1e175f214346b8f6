//! Embeddings of tokens.

use super::head::Head;
use eggroll_core::transformer::{PackedMatrix, Precision};

/// The embeddings of a model.
#[derive(Debug)]
pub(super) enum Embeddings {
    /// `[vocab_size, hidden_size]`
    Floats(Vec<f32>),
    /// As their file has them, `[hidden_size, vocab_size]`; `None` to use the tied output layer's matrix.
    Packed(Option<PackedMatrix>),
}

impl Embeddings {
    /// Appends the embedding of a token.
    ///
    /// # Panics
    ///
    /// Panics if there is no such token.
    pub fn push(&self, token: usize, hidden_size: usize, head: &Head, x: &mut Vec<f32>) {
        match self {
            Self::Floats(values) => x.extend_from_slice(&values[token * hidden_size..][..hidden_size]),
            Self::Packed(own) => {
                let matrix = own.as_ref().unwrap_or_else(|| head.matrix());
                match matrix.precision() {
                    Precision::Bf16 => {
                        x.extend(matrix.column_bits(token).map(|bits| f32::from_bits(u32::from(bits) << 16)))
                    }
                    _ => x.extend(matrix.column(token).map(|(integer, scale)| f32::from(integer) * scale)),
                }
            }
        }
    }
}
