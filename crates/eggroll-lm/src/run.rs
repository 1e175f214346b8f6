//! A thread's work on sequences of members.

use crate::host::{Decoder, MemberTask, ROWS, Sequence, fitting};
use crate::items::Item;
use eggroll_core::transformer::MemberRow;

/// Rows of logits at a time.
const LOGIT_ROWS: usize = 32;

/// The state of a thread's work.
pub(crate) struct DecoderRun<'a, D: Decoder> {
    pub decoder: &'a D,
    pub task: &'a MemberTask,
    buffers: D::Buffers,
    hidden: Vec<f32>,
    logits: Vec<f32>,
}

/// The common beginning of one member's items.
pub(crate) struct Prefix<S> {
    /// Tokens.
    pub len: usize,
    /// The state after them.
    pub state: S,
}

impl<'a, D: Decoder> DecoderRun<'a, D> {
    pub(crate) fn new(decoder: &'a D, task: &'a MemberTask) -> Self {
        Self { decoder, task, buffers: decoder.buffers(), hidden: Vec::new(), logits: Vec::new() }
    }

    /// Runs the common beginning of each member's items, once for each member.
    pub(crate) fn prefixes(&mut self, members: &[(usize, &[Item])]) -> Vec<Prefix<D::State>> {
        let empty = |(_, items): &(usize, &[Item])| {
            let len = common_prefix(items);
            Prefix { len, state: self.decoder.state(len) }
        };
        let mut prefixes: Vec<_> = members.iter().map(empty).collect();
        let mut sequences: Vec<_> = members
            .iter()
            .zip(&mut prefixes)
            .filter(|(_, prefix)| prefix.len > 0)
            .map(|((member, items), prefix)| {
                let (member, tokens) = (self.task.row(*member), &items[0].prompt()[..prefix.len]);
                Sequence { member, tokens, wanted: 0..0, state: &mut prefix.state }
            })
            .collect();
        let mut rest = sequences.as_mut_slice();
        while !rest.is_empty() {
            let count = fitting(rest.iter().map(|sequence| sequence.tokens.len()), ROWS);
            let (batch, later) = rest.split_at_mut(count);
            self.forward(batch);
            rest = later;
        }
        prefixes
    }

    /// Runs sequences; keeps their wanted rows.
    pub(crate) fn forward(&mut self, sequences: &mut [Sequence<'_, D::State>]) {
        self.hidden.clear();
        self.decoder.forward(self.task.noise(), sequences, &mut self.buffers, &mut self.hidden);
    }

    /// Calls `judge` with the number of each wanted row and its logits; `rows` are the members of the rows.
    pub(crate) fn logits(&mut self, rows: &[MemberRow], mut judge: impl FnMut(usize, &[f32])) {
        let (hidden, vocabulary) = (self.decoder.hidden_size(), self.decoder.vocab_size());
        let parts = rows.chunks(LOGIT_ROWS).zip(self.hidden.chunks(LOGIT_ROWS * hidden));
        for (part, (rows, hidden)) in parts.enumerate() {
            self.decoder.logits(self.task.noise(), rows, hidden, &mut self.buffers, &mut self.logits);
            for (row, logits) in self.logits.chunks_exact(vocabulary).enumerate() {
                judge(part * LOGIT_ROWS + row, logits);
            }
        }
    }
}

/// Length of the common beginning of all items' prompts, without each prompt's last token; 0 for a single item.
fn common_prefix(items: &[Item]) -> usize {
    let [first, others @ ..] = items else { return 0 };
    let last = |item: &Item| item.prompt().len() - 1;
    let shared = |other: &Item| first.prompt().iter().zip(other.prompt()).take_while(|(a, b)| a == b).count();
    let len = others.iter().map(|other| shared(other).min(last(other))).min();
    len.map_or(0, |len| len.min(last(first)))
}
