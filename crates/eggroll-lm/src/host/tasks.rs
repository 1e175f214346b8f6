//! Members of a population, in tasks of whole pairs for the cores.

use super::decoder::Decoder;
use super::noise::Noise;
use eggroll_core::profile::{self, Component};
use eggroll_core::transformer::MemberRow;
use eggroll_core::{ParameterEntry, Role};
use eggroll_train::{Population, workers};
use std::ops::Range;

/// Rows that run through the layers together: enough for full tiles, and for weights to be read rarely.
pub(crate) const ROWS: usize = 512;
/// Bytes of noise that a task may hold.
const NOISE_BYTES: usize = 64 << 20;

/// Some members, with the noise of their pairs.
pub(crate) struct MemberTask {
    /// Members of the population, or items of a model without noise.
    pub members: Range<usize>,
    first: usize,
    noise: Option<Noise>,
}

impl MemberTask {
    /// Items of a model without noise.
    pub(crate) fn plain() -> Self {
        Self { members: 0..1, first: 0, noise: None }
    }

    /// Items of a model without noise, recording the inputs of matrices.
    pub(crate) fn recording(noise: Noise) -> Self {
        Self { noise: Some(noise), ..Self::plain() }
    }

    /// The noise of the members, if they have any.
    pub(crate) fn noise(&self) -> Option<&Noise> {
        self.noise.as_ref()
    }

    /// The slot of a member's noise, and its sign.
    pub(crate) fn row(&self, member: usize) -> MemberRow {
        match self.noise {
            None => MemberRow { slot: 0, minus: false },
            Some(_) => MemberRow { slot: ((member - self.first) / 2) as u32, minus: !member.is_multiple_of(2) },
        }
    }
}

/// Runs `run` for all members, in tasks side by side on the cores; `rows` is the approximate number of rows of a member. Returns the
/// results of the tasks in the order of the members.
///
/// # Panics
///
/// Panics if an evaluation of the same model is running around this one, or if a parameter with noise is not a matrix of this decoder.
#[track_caller]
pub(crate) fn run_tasks<D: Decoder, R: Send>(
    decoder: &D,
    population: &Population,
    rows: usize,
    run: impl Fn(&MemberTask) -> R + Sync,
) -> Vec<R> {
    let perturbation = population.perturbation();
    perturbation.refuse_nesting();
    let _span = profile::span(Component::Fitness, 0);
    let matrices = decoder.matrices();
    let is_known =
        |entry: &&ParameterEntry| entry.role == Role::Frozen || matrices.iter().any(|(id, _)| *id == entry.id);
    if let Some(entry) = perturbation.table.entries().iter().find(|entry| !is_known(entry)) {
        panic!(
            "\"{}\" has noise, but is no matrix of this model on the host: pack the model that the population is of, and freeze all but matrices",
            entry.path
        );
    }
    let pools = workers::pools();
    let pairs = population.count() / 2;
    let by_rows = ROWS.div_ceil(2 * rows.max(1));
    let by_noise = NOISE_BYTES / Noise::pair_bytes(perturbation, &matrices).max(1);
    let even = pairs.div_ceil(pools.len());
    let each = even.min(by_rows).min(by_noise).max(1);
    let Range { start, end } = population.range();
    let tasks: Vec<_> = (start..end).step_by(2 * each).map(|first| first..end.min(first + 2 * each)).collect();
    let waiting = profile::waiting();
    let results = workers::map(pools, &tasks, |members| {
        let _span = profile::span(Component::Fitness, 0);
        let pairs: Vec<u32> = (members.start / 2..members.end / 2).map(|pair| pair as u32).collect();
        let noise = Some(Noise::draw(perturbation, &matrices, &pairs));
        run(&MemberTask { members: members.clone(), first: members.start, noise })
    });
    drop(waiting);
    population.note_used(&matrices.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    results
}

/// Runs `run` for contiguous parts of `items`, side by side on the cores. Parts are about equal, and not larger than the rows that
/// run through the layers together. Returns the results in order.
pub(crate) fn run_parts<T: Sync, R: Send>(
    items: &[T],
    rows: impl Fn(&T) -> usize,
    run: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    let pools = workers::pools();
    let all: usize = items.iter().map(&rows).sum();
    let each = all.div_ceil(pools.len()).min(ROWS);
    let mut parts = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let (part, later) = rest.split_at(fitting(rest.iter().map(&rows), each));
        parts.push(part);
        rest = later;
    }
    workers::map(pools, &parts, |part| run(part))
}

/// How many of the next sizes fit into `limit` together, at least one.
pub(crate) fn fitting(sizes: impl Iterator<Item = usize>, limit: usize) -> usize {
    let mut sum = 0;
    let fits = |size: &usize| {
        sum += size;
        sum <= limit
    };
    sizes.take_while(fits).count().max(1)
}
