//! The state of sequences after reading.

use super::attention::KeysValues;
use burn::tensor::{Int, Tensor};
use eggroll_core::MemberState;
use std::ops::Range;

/// The state of sequences: their last tokens, and the keys and values of every block. Empty before the first token.
#[derive(Clone, Debug, Default)]
pub struct TransformerState {
    pub(super) past: Option<Past>,
}

#[derive(Clone, Debug)]
pub(super) struct Past {
    /// `[batch, positions]`
    pub(super) tokens: Tensor<2, Int>,
    /// Of every block.
    pub(super) blocks: Vec<KeysValues>,
}

impl TransformerState {
    /// Positions that are held.
    pub fn positions(&self) -> usize {
        self.past.as_ref().map_or(0, |past| past.tokens.dims()[1])
    }
}

impl MemberState for KeysValues {
    fn rows(&self, members: Range<usize>) -> Self {
        Self { keys: self.keys.rows(members.clone()), values: self.values.rows(members) }
    }

    fn join(chunks: Vec<Self>) -> Self {
        let (keys, values) = chunks.into_iter().map(|chunk| (chunk.keys, chunk.values)).unzip();
        Self { keys: MemberState::join(keys), values: MemberState::join(values) }
    }
}

impl MemberState for TransformerState {
    fn rows(&self, members: Range<usize>) -> Self {
        let rows =
            |past: &Past| Past { tokens: past.tokens.rows(members.clone()), blocks: past.blocks.rows(members.clone()) };
        Self { past: self.past.as_ref().map(rows) }
    }

    fn join(chunks: Vec<Self>) -> Self {
        let held = chunks.iter().filter(|chunk| chunk.past.is_some()).count();
        assert!(
            held == 0 || held == chunks.len(),
            "integer transformer: states that have read join states that have not"
        );
        let past: Option<Vec<Past>> = chunks.into_iter().map(|chunk| chunk.past).collect();
        let join = |past: Vec<Past>| {
            let (tokens, blocks) = past.into_iter().map(|past| (past.tokens, past.blocks)).unzip();
            Past { tokens: MemberState::join(tokens), blocks: MemberState::join(blocks) }
        };
        Self { past: past.filter(|past| !past.is_empty()).map(join) }
    }
}
