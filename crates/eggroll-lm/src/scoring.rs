//! How probable texts are to the members of a population.

use crate::host::{Decoder, Noise, Sequence, Task, run_tasks};
use crate::items::{Item, Items, ItemsError};
use eggroll_core::transformer::{MemberRow, argmax, log_sum_exp};
use eggroll_train::{Population, workers};

/// A completion as a model judges it, read all at once (teacher forcing).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// `Σ_t ln p(token_t | all before)` over the tokens of the completion.
    pub log_probability: f32,
    /// Tokens of the completion.
    pub tokens: usize,
    /// Whether every token of the completion is the most probable one of the whole vocabulary.
    pub exact: bool,
}

impl Scored {
    /// Mean of `ln p` over the tokens of the completion.
    pub fn mean_log_probability(&self) -> f32 {
        self.log_probability / self.tokens as f32
    }
}

/// Rows that run through the layers together.
const ROWS: usize = 512;
/// Rows of logits at a time.
const LOGIT_ROWS: usize = 32;

/// Scores items with a model as it is, without noise: `[items]`.
///
/// # Errors
///
/// [`ItemsError`] for an item without tokens, or one that is longer than the context.
pub fn score<D: Decoder>(decoder: &D, items: &[Item]) -> Result<Vec<Scored>, ItemsError> {
    Items::Shared(items).check(decoder, 2)?;
    let plain = Task::plain();
    // Contiguous parts of about equal rows, several for each core.
    let rows: usize = items.iter().map(Item::tokens).sum();
    let each = rows.div_ceil(workers::pools().len()).min(ROWS).max(1);
    let mut parts: Vec<&[Item]> = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut sum = 0;
        let count = rest.iter().take_while(|item| {
            let first = sum == 0;
            sum += item.tokens();
            first || sum <= each
        });
        let (part, behind) = rest.split_at(count.count());
        parts.push(part);
        rest = behind;
    }
    let scored = workers::map(workers::pools(), &parts, |part| score_member_items(decoder, &plain, &[(0, part)]));
    Ok(scored.into_iter().flatten().flatten().collect())
}

/// Scores items with every member of a population: `[members][items]`, in the order of members and items. Results depend neither on
/// how members are put together nor on the number of cores.
///
/// What all items of a member begin with is computed once for the member.
///
/// # Errors
///
/// [`ItemsError`] for items without tokens, items longer than the context, or lists that do not fit the population.
///
/// # Panics
///
/// Panics if the noise is not of low rank on the model's matrices ([`Decoder::can_perturb`]): such members are separate models.
#[track_caller]
pub fn score_population<D: Decoder>(
    decoder: &D,
    population: &Population,
    items: Items,
) -> Result<Vec<Vec<Scored>>, ItemsError> {
    items.check(decoder, population.count())?;
    let first = population.range().start;
    let of = |member: usize| items.of(member - first, population.count());
    let rows = items.rows();
    let scored = run_tasks(decoder, population, rows, |task| {
        let members: Vec<(usize, &[Item])> = task.members.clone().map(|member| (member, of(member))).collect();
        score_member_items(decoder, task, &members)
    });
    Ok(scored.into_iter().flatten().collect())
}

/// The scores of every member's items.
fn score_member_items<D: Decoder>(decoder: &D, task: &Task, members: &[(usize, &[Item])]) -> Vec<Vec<Scored>> {
    let mut run =
        Run { decoder, noise: task.noise(), buffers: decoder.buffers(), hidden: Vec::new(), logits: Vec::new() };
    let shared: Vec<usize> = members.iter().map(|(_, items)| common_prefix(items)).collect();
    let mut prefixes: Vec<D::State> = shared.iter().map(|len| decoder.state(*len)).collect();
    let mut sequences: Vec<_> = members
        .iter()
        .zip(&mut prefixes)
        .zip(&shared)
        .filter(|(_, len)| **len > 0)
        .map(|(((member, items), state), len)| Sequence {
            member: task.row(*member),
            tokens: &items[0].all()[..*len],
            wanted: 0..0,
            state,
        })
        .collect();
    for batch in batches(&mut sequences, |sequence| sequence.tokens.len()) {
        run.forward(batch);
    }
    drop(sequences);
    let jobs: Vec<(usize, usize)> =
        members.iter().enumerate().flat_map(|(m, (_, items))| (0..items.len()).map(move |i| (m, i))).collect();
    let mut scored: Vec<Vec<Scored>> = members.iter().map(|(_, items)| Vec::with_capacity(items.len())).collect();
    let mut jobs = jobs.as_slice();
    while !jobs.is_empty() {
        let mut rows = 0;
        let count = jobs.iter().take_while(|(m, i)| {
            let first = rows == 0;
            rows += members[*m].1[*i].tokens() - shared[*m];
            first || rows <= ROWS
        });
        let (now, later) = jobs.split_at(count.count());
        jobs = later;
        let mut states: Vec<D::State> =
            now.iter().map(|(m, i)| decoder.fork(&prefixes[*m], members[*m].1[*i].tokens() - 1)).collect();
        let mut sequences: Vec<_> = now
            .iter()
            .zip(&mut states)
            .map(|((m, i), state)| {
                let item = &members[*m].1[*i];
                // The last token is only predicted.
                let tokens = &item.all()[shared[*m]..item.tokens() - 1];
                let wanted = item.prompt().len() - 1 - shared[*m]..tokens.len();
                Sequence { member: task.row(members[*m].0), tokens, wanted, state }
            })
            .collect();
        run.forward(&mut sequences);
        let rows = now.iter().flat_map(|(m, i)| {
            let (member, items) = members[*m];
            items[*i].completion().iter().map(move |token| (task.row(member), *token))
        });
        let judged = run.judge(&rows.collect::<Vec<_>>());
        let mut judged = judged.into_iter();
        for (m, i) in now {
            let tokens = members[*m].1[*i].completion().len();
            let start = Scored { log_probability: 0.0, tokens, exact: true };
            let add = |sum: Scored, (log_probability, exact): (f32, bool)| Scored {
                log_probability: sum.log_probability + log_probability,
                exact: sum.exact && exact,
                ..sum
            };
            scored[*m].push(judged.by_ref().take(tokens).fold(start, add));
        }
    }
    scored
}

/// A thread's work.
struct Run<'a, D: Decoder> {
    decoder: &'a D,
    noise: Option<&'a Noise>,
    buffers: D::Buffers,
    hidden: Vec<f32>,
    logits: Vec<f32>,
}

impl<D: Decoder> Run<'_, D> {
    /// Runs sequences; their wanted rows are then in `hidden`.
    fn forward(&mut self, sequences: &mut [Sequence<'_, D::State>]) {
        self.hidden.clear();
        self.decoder.forward(self.noise, sequences, &mut self.buffers, &mut self.hidden);
    }

    /// `ln p` of each row's token, and whether it is the most probable one.
    fn judge(&mut self, rows: &[(MemberRow, u32)]) -> Vec<(f32, bool)> {
        let (hidden, vocabulary) = (self.decoder.hidden_size(), self.decoder.vocab_size());
        let mut judged = Vec::with_capacity(rows.len());
        for (rows, hidden) in rows.chunks(LOGIT_ROWS).zip(self.hidden.chunks(LOGIT_ROWS * hidden)) {
            let members: Vec<MemberRow> = rows.iter().map(|(row, _)| *row).collect();
            self.decoder.logits(self.noise, &members, hidden, &mut self.buffers, &mut self.logits);
            for ((_, token), logits) in rows.iter().zip(self.logits.chunks_exact(vocabulary)) {
                let log_probability = logits[*token as usize] - log_sum_exp(logits);
                judged.push((log_probability, argmax(logits) == Some(*token as usize)));
            }
        }
        judged
    }
}

/// Sequences in batches of about [`ROWS`] rows.
fn batches<T>(mut sequences: &mut [T], rows: impl Fn(&T) -> usize) -> Vec<&mut [T]> {
    let mut batches = Vec::new();
    while !sequences.is_empty() {
        let mut sum = 0;
        let count = sequences.iter().take_while(|sequence| {
            let first = sum == 0;
            sum += rows(sequence);
            first || sum <= ROWS
        });
        let count = count.count();
        let (batch, rest) = sequences.split_at_mut(count);
        batches.push(batch);
        sequences = rest;
    }
    batches
}

/// Tokens that all items begin with, less one of each prompt; 0 of a single item.
fn common_prefix(items: &[Item]) -> usize {
    let [first, others @ ..] = items else { return 0 };
    let shared = |other: &Item| first.prompt().iter().zip(other.prompt()).take_while(|(a, b)| a == b).count();
    let len = others.iter().map(|other| shared(other).min(other.prompt().len() - 1)).min();
    len.map_or(0, |len| len.min(first.prompt().len() - 1))
}
