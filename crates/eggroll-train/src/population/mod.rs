//! The members of one generation and the scope in which they are evaluated.

mod budget;
mod members;
mod one_by_one;
mod slice;
pub mod workers;

pub use members::Members;

use crate::config::InputProjection;
use crate::fitness::{Fitness, Scores};
use burn::module::ParamId;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::profile::{self, Component};
use eggroll_core::scope::{Perturbation, Use};
use eggroll_core::sync::locked;
use eggroll_core::{MemberState, PairRange};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The members of one generation; made by [`ask`](crate::EvolutionStrategy::ask).
#[derive(Debug)]
pub struct Population {
    pub(crate) generation: u64,
    pub(crate) starts_episode: bool,
    /// The first member that is evaluated here.
    pub(crate) first: usize,
    /// Members that are evaluated here.
    pub(crate) members: usize,
    pub(crate) perturbation: Perturbation,
    pub(crate) chunk: Option<usize>,
    /// Bytes that the perturbed layers return for one member, once known.
    pub(crate) member_bytes: Arc<AtomicUsize>,
    /// Bytes of memory that may be used, if known.
    pub(crate) memory_limit: Option<u64>,
    /// How all chunks so far have used the parameters; `None` before the first. Slices note it with the population.
    pub(crate) uses: Arc<Mutex<Option<Vec<Use>>>>,
    pub(crate) input_projection: InputProjection,
    /// The rows that weights are given without noise, if estimates are projected onto them.
    pub(crate) unperturbed_rows: Arc<Mutex<Vec<Use>>>,
}

impl Population {
    /// Number of members: of a [slice](Self::slice) its own.
    pub fn count(&self) -> usize {
        self.members
    }

    /// Numbers of the members in their generation: from 0, or those of a [slice](Self::slice).
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.members
    }

    /// The generation, from 0.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether members start anew in this generation: in the first of an episode
    /// ([`with_episode`](crate::EvolutionStrategyConfig::with_episode)); without episodes in every one.
    pub fn starts_episode(&self) -> bool {
        self.starts_episode
    }

    /// Evaluates all members: calls `score` once for every chunk of members and reads the fitness to the host once.
    ///
    /// Inside `score`, eggroll's modules of the strategy's model are perturbed: `forward` takes rows of all members of
    /// the chunk, member-major, and returns them so. Other models, and this one outside, compute as usual. `score`
    /// returns the fitness of the chunk's members, `[members]`, higher is better. Results do not depend on the chunks.
    ///
    /// # Panics
    ///
    /// Panics if `score` returns another number of values than the chunk has members, if an evaluation of the same model is
    /// running on this thread already, or if a chunk would take more memory than there is
    /// ([`with_memory_limit`](crate::EvolutionStrategyConfig::with_memory_limit)).
    #[track_caller]
    pub fn evaluate(&self, mut score: impl FnMut(&Members) -> Tensor<1>) -> Fitness {
        self.evaluate_carrying((), |members, ()| (score(members), ())).0
    }

    /// [`evaluate`](Self::evaluate) for several scores of each member, `[members, questions]`, as of the answers to several prompts:
    /// the shaping rule shapes each question's scores alone and takes the mean
    /// ([`FitnessShaping::shape_questions`](crate::FitnessShaping::shape_questions)).
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_questions(&self, mut score: impl FnMut(&Members) -> Tensor<2>) -> Fitness {
        self.evaluate_carrying((), |members, ()| (score(members), ())).0
    }

    /// [`evaluate`](Self::evaluate) for fitness of integers, which are compared exactly.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_integers(&self, mut score: impl FnMut(&Members) -> Tensor<1, Int>) -> Fitness {
        self.evaluate_carrying((), |members, ()| (score(members), ())).0
    }

    /// Evaluates all members as [`evaluate`](Self::evaluate) does, with what every member has kept from the generation before,
    /// as the state of a recurrent model: `score` takes it and returns it with the fitness, float or integer.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate), and if `carried` has no row for every member: of a slice, for every one of its own.
    #[track_caller]
    pub fn evaluate_carrying<R: Scores, S: MemberState>(
        &self,
        carried: S,
        mut score: impl FnMut(&Members, S) -> (R, S),
    ) -> (Fitness, S) {
        let _span = profile::span(Component::Fitness, 0);
        let mut results = Vec::new();
        let Range { start: mut first, end } = self.range();
        while first < end {
            let members = self.chunk_size(Self::CHUNK_BYTES, 1).min(end - first);
            self.check_memory(members, 1);
            results.push(self.evaluate_chunk(Members { first, count: members }, &carried, &mut score));
            first += members;
        }
        join(results)
    }

    /// Evaluates all members as [`evaluate`](Self::evaluate) does, chunks side by side on all CPU cores: faster for models
    /// on a CPU, because a chunk stays in one core's cache and no operation waits for another core. Results are the same, bit
    /// for bit.
    ///
    /// Inside `score` Burn's own operations run on one core.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_parallel(&self, score: impl Fn(&Members) -> Tensor<1> + Sync) -> Fitness {
        self.evaluate_parallel_carrying((), |members, ()| (score(members), ())).0
    }

    /// Evaluates all members as [`evaluate_parallel`](Self::evaluate_parallel) does, with what every member has kept; see
    /// [`evaluate_carrying`](Self::evaluate_carrying).
    ///
    /// # Panics
    ///
    /// As [`evaluate_carrying`](Self::evaluate_carrying).
    #[track_caller]
    pub fn evaluate_parallel_carrying<R: Scores, S: MemberState>(
        &self,
        carried: S,
        score: impl Fn(&Members, S) -> (R, S) + Sync,
    ) -> (Fitness, S) {
        let _span = profile::span(Component::Fitness, 0);
        let workers = workers::pools();
        let even = self.members.div_ceil(workers.len()).next_multiple_of(2);
        let evaluate = |chunk: &Members| {
            self.evaluate_chunk(*chunk, &carried, &mut |members: &Members, part| score(members, part))
        };
        // Without a measurement yet, a first chunk makes one.
        let head = if self.is_to_be_measured(workers.len()) { Self::FIRST_CHUNK.min(self.members) } else { 0 };
        let mut results = Vec::new();
        if head > 0 {
            results.push(evaluate(&Members { first: self.first, count: head }));
        }
        let size = self.chunk_size(Self::CORE_BYTES, workers.len()).min(even);
        self.check_memory(size, workers.len().min((self.members - head).div_ceil(size)));
        let chunks = self.chunks(head, size);
        let waiting = profile::waiting();
        results.extend(workers::map(workers, &chunks, evaluate));
        drop(waiting);
        join(results)
    }

    #[track_caller]
    fn evaluate_chunk<R: Scores, S: MemberState>(
        &self,
        members: Members,
        carried: &S,
        score: &mut impl FnMut(&Members, S) -> (R, S),
    ) -> (R, S) {
        let part = carried.rows(members.first - self.first..members.first - self.first + members.count);
        let ((scores, part), scope) = self.perturbation.run(members.pairs(), || score(&members, part));
        assert!(
            scores.shape().first() == Some(&members.count),
            "evaluate: the closure returned fitness of shape {:?} for a chunk of {} members",
            scores.shape(),
            members.count
        );
        self.member_bytes.store(scope.output_bytes.div_ceil(members.count), Relaxed);
        self.note_uses(scope.uses);
        if self.input_projection == InputProjection::Unperturbed && members.first == self.first {
            let two = Members { first: self.first, count: 2 };
            let rows = self.perturbation.unperturbed_rows(|| score(&two, carried.rows(0..2)));
            *locked(&self.unperturbed_rows) = rows;
        }
        (scores, part)
    }

    /// The members but for the first `skipped`, in chunks of `size`.
    fn chunks(&self, skipped: usize, size: usize) -> Vec<Members> {
        let Range { start, end } = self.range();
        let chunk = |first| Members { first, count: size.min(end - first) };
        (start + skipped..end).step_by(size).map(chunk).collect()
    }

    /// Runs `episodes` for chunks of members, side by side on all cores for a model in host memory: many forwards under the same noise,
    /// which is therefore held if memory allows it. Returns the rows of all chunks, in the order of their members.
    ///
    /// A chunk is as configured, or a core's even share on CPUs and all members on a device.
    #[track_caller]
    pub fn evaluate_holding(&self, episodes: impl Fn(&Members) -> Vec<f32> + Sync) -> Vec<f32> {
        let perturbation = self.holding();
        let workers = if perturbation.table.is_on_host() { workers::pools() } else { &workers::pools()[..1] };
        let even = self.members.div_ceil(workers.len());
        let size = self.chunk.map_or(even, |chunk| chunk.min(even)).next_multiple_of(2);
        let chunks = self.chunks(0, size);
        let run = |members: &Members| {
            let (rows, scope) = perturbation.run(members.pairs(), || episodes(members));
            self.note_uses(scope.uses);
            rows
        };
        let parts = if perturbation.table.is_on_host() {
            let _waiting = profile::waiting();
            workers::map(workers, &chunks, run)
        } else {
            // Host reads are counted on the thread that trains.
            chunks.iter().map(run).collect()
        };
        parts.concat()
    }

    /// The noise of the members.
    pub fn perturbation(&self) -> &Perturbation {
        &self.perturbation
    }

    /// The pairs of the members.
    pub fn pairs(&self) -> PairRange {
        Members { first: self.first, count: self.members }.pairs()
    }

    /// Where the model is.
    pub fn device(&self) -> Device {
        self.perturbation.table.devices().next().cloned().unwrap_or_default()
    }

    /// These parameters were perturbed, in a loop that asks no scope.
    pub fn note_used(&self, parameters: &[ParamId]) {
        let mut uses = vec![Use::None; self.perturbation.table.entries().len()];
        for position in parameters.iter().filter_map(|id| self.perturbation.table.position(*id)) {
            uses[position] = Use::Other;
        }
        self.note_uses(uses);
    }

    /// All parameters were perturbed: members were models of their own.
    pub(crate) fn note_all_used(&self) {
        self.note_uses(vec![Use::Other; self.perturbation.table.entries().len()]);
    }

    /// A parameter counts as perturbed only if every chunk used it.
    fn note_uses(&self, uses: Vec<Use>) {
        let mut all = locked(&self.uses);
        // Merging may panic: nothing is taken out before.
        let merged = match &*all {
            None => uses,
            Some(before) => before.iter().cloned().zip(uses).map(|(before, now)| merge(before, now)).collect(),
        };
        *all = Some(merged);
    }
}

fn merge(before: Use, now: Use) -> Use {
    match (before, now) {
        (Use::None, _) | (_, Use::None) => Use::None,
        (Use::Shared(before), Use::Shared(now)) => {
            debug_assert!(
                before.to_data() == now.to_data(),
                "the rows given to forward_shared differ between chunks of one generation"
            );
            Use::Shared(before)
        }
        _ => Use::Other,
    }
}

/// The results of all chunks.
fn join<R: Scores, S: MemberState>(results: Vec<(R, S)>) -> (Fitness, S) {
    let (scores, carried) = results.into_iter().unzip();
    (R::read(scores), S::join(carried))
}
