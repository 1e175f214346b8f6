//! The interface of a language model for scoring and generation.

use super::noise::Noise;
use eggroll_core::scope::Perturbation;
use eggroll_core::transformer::{Factors, MemberRow};
use eggroll_core::{ParameterEntry, Role};
use std::ops::Range;

/// New tokens of one sequence.
#[derive(Debug)]
pub struct Sequence<'a, S> {
    /// The member that it belongs to: the slot of its pair's noise and its sign.
    pub member: MemberRow,
    /// The tokens.
    pub tokens: &'a [u32],
    /// The tokens whose hidden rows are wanted.
    pub wanted: Range<usize>,
    /// The state after earlier tokens; updated to include these.
    pub state: &'a mut S,
}

/// Appends the wanted rows of `x`, the rows of all sequences.
///
/// # Panics
///
/// Panics if a sequence wants rows that it does not have.
#[track_caller]
pub(super) fn append_wanted<S>(sequences: &[Sequence<S>], x: &[f32], width: usize, hidden: &mut Vec<f32>) {
    let mut row = 0;
    for Sequence { tokens, wanted, .. } in sequences {
        assert!(wanted.end <= tokens.len(), "rows {wanted:?} of {} tokens", tokens.len());
        hidden.extend_from_slice(&x[(row + wanted.start) * width..(row + wanted.end) * width]);
        row += tokens.len();
    }
}

/// A language model on the host.
pub trait Decoder: Sync {
    /// The state of a sequence between tokens.
    type State: Send + Sync;
    /// Buffers of a thread.
    type Buffers: Send;

    /// Tokens that the model knows.
    fn vocab_size(&self) -> usize;

    /// Elements of a hidden row.
    fn hidden_size(&self) -> usize;

    /// The longest sequence, in tokens.
    fn context_length(&self) -> usize;

    /// The state of an empty sequence, with room for `capacity` tokens.
    fn state(&self, capacity: usize) -> Self::State;

    /// A state that begins as this one, with room for `capacity` tokens.
    fn fork(&self, state: &Self::State, capacity: usize) -> Self::State;

    /// Bytes of a state.
    fn state_bytes(&self, capacity: usize) -> usize;

    /// Empty buffers.
    fn buffers(&self) -> Self::Buffers;

    /// The parameters that noise can be drawn for, by number in [`Noise`], with their shapes `[d_input, d_output]`.
    fn matrices(&self) -> Vec<(burn::module::ParamId, [usize; 2])>;

    /// Runs the tokens of all sequences; appends the wanted hidden rows to `hidden`, sequence by sequence.
    ///
    /// # Shapes
    ///
    /// - hidden: `[rows that are wanted, hidden_size]`
    fn forward(
        &self,
        noise: Option<&Noise>,
        sequences: &mut [Sequence<'_, Self::State>],
        buffers: &mut Self::Buffers,
        hidden: &mut Vec<f32>,
    );

    /// Logits of hidden rows, with the member of each row.
    ///
    /// # Shapes
    ///
    /// - hidden: `[rows, hidden_size]`
    /// - logits: `[rows, vocab_size]`
    fn logits(
        &self,
        noise: Option<&Noise>,
        rows: &[MemberRow],
        hidden: &[f32],
        buffers: &mut Self::Buffers,
        logits: &mut Vec<f32>,
    );

    /// Whether the members of a perturbation can run: all noise must be low-rank noise of [`matrices`](Self::matrices), and not from a
    /// table.
    fn can_perturb(&self, perturbation: &Perturbation) -> bool {
        let matrices = self.matrices();
        let known = |(position, entry): (usize, &ParameterEntry)| {
            let drawn = || Factors::can_draw(&perturbation.parameter(position));
            entry.role == Role::Frozen || drawn() && matrices.iter().any(|(id, _)| *id == entry.id)
        };
        perturbation.table.entries().iter().enumerate().all(known)
    }
}
