//! Evaluation by chunks of members.

use super::{MemberChunk, Population, workers};
use crate::fitness::{Fitness, Scores};
use eggroll_core::MemberState;
use eggroll_core::profile::{self, Component};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

impl Population {
    /// Evaluates all members: calls `score` once for every chunk of members and reads the fitness to the host once.
    ///
    /// Inside `score`, eggroll's modules of the strategy's model are perturbed: `forward` takes and returns rows of all members of the chunk, member-major.
    /// Other models, clones with `no_grad()`, and this model outside of `score` compute as usual ([identifiers](eggroll_core::ParameterTable#identifiers)).
    ///
    /// `score` returns the fitness of the chunk's members, higher is better, as any [`Scores`]:
    /// - a tensor `[members]` of floats or integers;
    /// - `[members, parts]`, with the score of every image, prompt or task;
    /// - `[members, sequences, steps]`, with the score of every token;
    /// - a `Vec<f32>` or `Vec<i32>` that was computed on the host.
    ///
    /// Weights learn from the score of each part where they can ([`Credit`](crate::Credit)). For that, `score` is called once more, for two members without
    /// noise. If it asks which members it has, it is called for four others too; in the first generation by part, for all others. That generation also
    /// calls it a few times to find [whose rows](crate::RowCheck) layers are given.
    ///
    /// For a model in host memory, chunks run on all CPU cores at the same time. Burn's own operations inside `score` run on one
    /// core each, so a chunk stays in a core's cache. On a device chunks form one queue. Results do not depend on the chunks, bit
    /// for bit.
    ///
    /// `score` may evaluate populations of other models. An inner evaluation begins outside of all others: in it this model is plain, on
    /// every thread; after it, perturbed again.
    ///
    /// A closure that changes what it captures needs [`evaluate_mut`](Self::evaluate_mut); one that can fail
    /// [`try_evaluate`](Self::try_evaluate).
    ///
    /// # Panics
    ///
    /// Panics if
    /// - `score` returns another number of values than the chunk has members,
    /// - `forward` was given rows that were never [repeated](MemberChunk::repeat) for the members,
    /// - an evaluation of the same model is running around this one,
    /// - a chunk would take more memory than there is ([`with_memory_limit`](crate::EvolutionStrategyConfig::with_memory_limit)),
    /// - a clone of the model without `no_grad()` is used next to it, with the [`CloneError`](eggroll_core::scope::CloneError).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// let device = Device::flex();
    /// let model = LinearConfig::new(2, 1).init(&device);
    /// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).init(&model);
    /// let population = strategy.ask();
    /// let x = Tensor::<2>::ones([3, 2], &device);
    ///
    /// // A score that is a tensor.
    /// let means = population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone()))));
    /// // The same computed on the host.
    /// let on_host = population.evaluate(|members| {
    ///     let y = model.forward(members.repeat(x.clone())); // [members · 3, 1]
    ///     let y = y.into_data().try_to_vec::<f32>().unwrap();
    ///     y.chunks(3).map(|rows| rows.iter().sum::<f32>() / 3.0).collect::<Vec<f32>>()
    /// });
    /// assert!(means.values().iter().zip(on_host.values()).all(|(a, b)| (a - b).abs() < 1e-6));
    /// ```
    #[track_caller]
    pub fn evaluate<R: Scores>(&self, score: impl Fn(&MemberChunk) -> R + Sync) -> Fitness {
        self.evaluate_with_state((), |members, ()| (score(members), ())).0
    }

    /// [`evaluate`](Self::evaluate) for a score that can fail, for example one from a simulator or a service.
    ///
    /// # Errors
    ///
    /// The error of the first chunk that fails; chunks that have not begun are left out then.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn try_evaluate<R: Scores, E: Send>(
        &self,
        score: impl Fn(&MemberChunk) -> Result<R, E> + Sync,
    ) -> Result<Fitness, E> {
        Ok(self.try_evaluate_with_state((), |members, ()| Ok((score(members)?, ())))?.0)
    }

    /// [`evaluate`](Self::evaluate) for a closure that changes what it captures: chunks are evaluated one after the other, on this thread. On CPUs
    /// `evaluate` is faster. With scores of several [parts](crate::Credit) `score` is called more often after the first chunk, as described there.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_mut<R: Scores>(&self, mut score: impl FnMut(&MemberChunk) -> R) -> Fitness {
        never(self.in_order((), |members, ()| Ok((score(members), ())))).0
    }

    /// [`evaluate`](Self::evaluate) with a state of every member, such as the hidden state of a recurrent model. `score` takes the
    /// state of its members and returns the next one with the scores. The state of all members is returned with the fitness, for the
    /// next generation.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate), and if `state` has no row for every member, or every member of the slice.
    #[track_caller]
    pub fn evaluate_with_state<R: Scores, S: MemberState>(
        &self,
        state: S,
        score: impl Fn(&MemberChunk, S) -> (R, S) + Sync,
    ) -> (Fitness, S) {
        never(self.try_evaluate_with_state(state, |members, state| Ok(score(members, state))))
    }

    /// [`evaluate_with_state`](Self::evaluate_with_state) for a score that can fail.
    ///
    /// # Errors
    ///
    /// As [`try_evaluate`](Self::try_evaluate).
    ///
    /// # Panics
    ///
    /// As [`evaluate_with_state`](Self::evaluate_with_state).
    #[track_caller]
    pub fn try_evaluate_with_state<R: Scores, S: MemberState, E: Send>(
        &self,
        state: S,
        score: impl Fn(&MemberChunk, S) -> Result<(R, S), E> + Sync,
    ) -> Result<(Fitness, S), E> {
        if !self.is_on_host() {
            return self.in_order(state, score);
        }
        self.alone(|| self.side_by_side(state, score))
    }

    /// Chunks on all cores.
    #[track_caller]
    fn side_by_side<R: Scores, S: MemberState, E: Send>(
        &self,
        state: S,
        score: impl Fn(&MemberChunk, S) -> Result<(R, S), E> + Sync,
    ) -> Result<(Fitness, S), E> {
        let _span = profile::span(Component::Fitness, 0);
        let workers = workers::pools();
        let even = self.members.div_ceil(workers.len()).next_multiple_of(2);
        let failed = AtomicBool::new(false);
        let evaluate = |chunk: &MemberChunk| {
            if failed.load(Relaxed) {
                return None;
            }
            let result = self.evaluate_chunk(*chunk, &state, &mut |members: &MemberChunk, part| score(members, part));
            failed.fetch_or(result.is_err(), Relaxed);
            Some(result)
        };
        // Without a measurement yet, a first chunk makes one.
        let head = if self.is_to_be_measured(workers.len()) { Self::FIRST_CHUNK.min(self.members) } else { 0 };
        let mut results = Vec::new();
        if head > 0 {
            results.push(evaluate(&MemberChunk { first: self.first, count: head }));
        }
        let size = self.chunk_size(Self::CORE_BYTES, workers.len()).min(even);
        self.check_memory(size, workers.len().min((self.members - head).div_ceil(size)));
        let chunks = match self.chunk_size {
            Some(_) => self.chunks(head, size),
            None => self.even_chunks(head, size, workers.len()),
        };
        let waiting = profile::waiting();
        results.extend(workers::map(workers, &chunks, evaluate));
        drop(waiting);
        Ok(join(results.into_iter().flatten().collect::<Result<_, E>>()?))
    }

    /// Chunk after chunk, on this thread.
    #[track_caller]
    fn in_order<R: Scores, S: MemberState, E>(
        &self,
        state: S,
        mut score: impl FnMut(&MemberChunk, S) -> Result<(R, S), E>,
    ) -> Result<(Fitness, S), E> {
        let _span = profile::span(Component::Fitness, 0);
        let Range { start: mut first, end } = self.range();
        let results = self.alone(|| -> Result<_, E> {
            let mut results = Vec::new();
            while first < end {
                let members = self.chunk_size(self.chunk_bytes(), 1).min(end - first);
                self.check_memory(members, 1);
                results.push(self.evaluate_chunk(MemberChunk { first, count: members }, &state, &mut score)?);
                first += members;
            }
            Ok(results)
        })?;
        Ok(join(results))
    }

    #[track_caller]
    fn evaluate_chunk<R: Scores, S: MemberState, E>(
        &self,
        members: MemberChunk,
        state: &S,
        score: &mut impl FnMut(&MemberChunk, S) -> Result<(R, S), E>,
    ) -> Result<(R, S), E> {
        let part = state.rows(members.first - self.first..members.first - self.first + members.count);
        let rows = if S::HAS_ROWS { Some(members.count) } else { None };
        let (result, scope) = self.perturbation.run_members(members.pairs(), rows, || score(&members, part));
        let (scores, part) = result?;
        let shape = scores.shape();
        assert!(
            shape.first() == Some(&members.count) && !shape.contains(&0),
            "evaluate: the closure returned fitness of shape {shape:?} for a chunk of {} members: expected one score for each member, as \
             members.mean makes of rows",
            members.count
        );
        let output_bytes = self.note_scope(scope);
        self.member_bytes.store(output_bytes.div_ceil(members.count as u64), Relaxed);
        if members.first == self.first {
            self.note_inputs(&shape[1..], members, S::HAS_ROWS, |members| {
                let own = members.first - self.first;
                score(members, state.rows(own..own + members.count)).map(|(scores, _)| scores)
            })?;
        }
        Ok((scores, part))
    }
}

/// Unwraps a result that cannot fail.
pub(super) fn never<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// The results of all chunks.
#[track_caller]
fn join<R: Scores, S: MemberState>(results: Vec<(R, S)>) -> (Fitness, S) {
    let (scores, state): (Vec<R>, Vec<S>) = results.into_iter().unzip();
    let tasks = |score: &R| score.shape()[1..].to_vec();
    if let Some(other) = scores.iter().find(|score| tasks(score) != tasks(&scores[0])) {
        panic!(
            "evaluate: the closure returned fitness of shape {:?} for one chunk and {:?} for another: expected the \
             same number of tasks for all members",
            scores[0].shape(),
            other.shape()
        );
    }
    (R::read(scores), S::join(state))
}
