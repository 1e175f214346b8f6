//! The members of one generation and the scope in which they are evaluated.

mod budget;
mod credits;
mod evaluate;
mod inputs;
mod members;
mod one_by_one;
mod row_check;
mod rows;
mod slice;
pub mod workers;

pub use credits::{Credits, ParameterCredit};
pub(crate) use credits::{EstimatePlan, plans, weights_of_rows};
pub use members::MemberChunk;
pub use row_check::RowCheck;

use crate::config::{Credit, RunningSettings};
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::profile;
use eggroll_core::scope::{Enclosing, Inputs, ParameterUse, Perturbation, ScopeUse};
use eggroll_core::sync::locked;
use eggroll_core::{Field, PairRange, ParameterTensor};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

/// The members of one generation; made by [`ask`](crate::EvolutionStrategy::ask).
#[derive(Debug)]
pub struct Population {
    pub(crate) generation: u64,
    pub(crate) resets_state: bool,
    /// Members of the generation.
    pub(crate) size: usize,
    /// The first member that is evaluated here.
    pub(crate) first: usize,
    /// Members that are evaluated here.
    pub(crate) members: usize,
    pub(crate) perturbation: Perturbation,
    /// The settings when the population was asked for.
    pub(crate) settings: RunningSettings,
    pub(crate) chunk_size: Option<usize>,
    /// Bytes that the perturbed layers return for one member, once known.
    pub(crate) member_bytes: Arc<AtomicU64>,
    /// Bytes of memory that may be used, if known.
    pub(crate) memory_limit: Option<u64>,
    /// How all chunks so far have used the parameters; `None` before the first. Slices note it with the population.
    pub(crate) uses: Arc<Mutex<Option<Vec<ParameterUse>>>>,
    /// The fields of each parameter that were evaluated, one for each storage of its values.
    pub(crate) fields: Arc<Mutex<Vec<Vec<Field>>>>,
    /// What estimates are made of; also `Mean` if they cannot depend on the inputs of layers.
    pub(crate) credit: Credit,
    /// Whether the optimizer moves integer parameters, which can learn by part then.
    pub(crate) moves_integers: bool,
    /// Whether an evaluation is asked to note what layers are given.
    pub(crate) observes: Arc<AtomicBool>,
    /// What parameters are given without noise, once an evaluation has noted it.
    pub(crate) inputs: Arc<Mutex<Option<Vec<Inputs>>>>,
    /// Whether the strategy knew anything of these rows when the population was asked for.
    pub(crate) knows_rows: bool,
    /// What is known of them now, by position.
    pub(crate) rows: Arc<Mutex<Option<Arc<[RowCheck]>>>>,
}

impl Population {
    /// Whether these are a [part](Self::slice) of the generation's members.
    pub fn is_slice(&self) -> bool {
        self.members < self.size
    }

    /// Number of members: of a [slice](Self::slice) its own.
    pub fn count(&self) -> usize {
        self.members
    }

    /// Numbers of the members in their generation: all from 0, or the members of a [slice](Self::slice).
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.members
    }

    /// The generation, from 0.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The [settings](crate::EvolutionStrategy::set_sigma) when the population was asked for.
    pub fn settings(&self) -> RunningSettings {
        self.settings
    }

    /// Whether members start anew in this generation: in the first of an
    /// [unroll horizon](crate::EvolutionStrategyConfig::with_unroll_horizon); without one in every generation.
    pub fn resets_state(&self) -> bool {
        self.resets_state
    }

    /// The members but for the first `skipped`, in chunks of `size`.
    fn chunks(&self, skipped: usize, size: usize) -> Vec<MemberChunk> {
        let Range { start, end } = self.range();
        let chunk = |first| MemberChunk { first, count: size.min(end - first) };
        (start + skipped..end).step_by(size).map(chunk).collect()
    }

    /// The members but for the first `skipped`, in nearly equal chunks of at most `size`: as many for each core, so that none waits for the last.
    fn even_chunks(&self, skipped: usize, size: usize, cores: usize) -> Vec<MemberChunk> {
        let Range { start, end } = self.range();
        let pairs = (end - start - skipped) / 2;
        let count = pairs.div_ceil(size / 2).next_multiple_of(cores).min(pairs);
        let edge = |chunk: usize| start + skipped + 2 * (pairs * chunk / count);
        (0..count).map(|chunk| MemberChunk { first: edge(chunk), count: edge(chunk + 1) - edge(chunk) }).collect()
    }

    /// Runs `episodes` for chunks of members, side by side on all cores for a model in host memory. An episode has many forwards under
    /// the same noise, which is held if memory allows. Returns the rows of all chunks, in the order of their members.
    ///
    /// Chunks are as configured; by default, an even share for each core on CPUs, and all members on a device.
    #[track_caller]
    pub fn evaluate_with_cached_noise(&self, episodes: impl Fn(&MemberChunk) -> Vec<f32> + Sync) -> Vec<f32> {
        self.alone(|| self.cached_noise(episodes))
    }

    #[track_caller]
    fn cached_noise(&self, episodes: impl Fn(&MemberChunk) -> Vec<f32> + Sync) -> Vec<f32> {
        let perturbation = self.holding();
        let workers = if self.is_on_host() { workers::pools() } else { &workers::pools()[..1] };
        let even = self.members.div_ceil(workers.len());
        let size = self.chunk_size.map_or(even, |chunk| chunk.min(even)).next_multiple_of(2);
        let chunks = self.chunks(0, size);
        let run = |members: &MemberChunk| {
            let (rows, scope) = perturbation.run_members(members.pairs(), Some(members.count), || episodes(members));
            self.note_scope(scope);
            rows
        };
        let parts = if self.is_on_host() {
            let _waiting = profile::waiting();
            workers::map(workers, &chunks, run)
        } else {
            // Host reads are counted on the thread that trains.
            chunks.iter().map(run).collect()
        };
        parts.concat()
    }

    /// Runs an evaluation outside of all scopes of this thread: other models are plain in it, whichever threads take its chunks.
    #[track_caller]
    fn alone<R>(&self, evaluation: impl FnOnce() -> R) -> R {
        self.perturbation.refuse_nesting();
        Enclosing::here().run(evaluation)
    }

    /// Bytes of memory that an evaluation may use, if known: of the device where the model is.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// What weights learn from: `Mean` where they [cannot](crate::EvolutionStrategy::credit) learn by part.
    pub fn credit(&self) -> Credit {
        self.credit
    }

    /// The noise of the members.
    pub fn perturbation(&self) -> &Perturbation {
        &self.perturbation
    }

    /// The pairs of the members.
    pub fn pairs(&self) -> PairRange {
        MemberChunk { first: self.first, count: self.members }.pairs()
    }

    /// The member of that index as a separate model: for example the best one, with the index from
    /// [`Fitness::best`](crate::Fitness::best), to evaluate or save. The mean of the members is the model that
    /// [`tell`](crate::EvolutionStrategy::tell) updates.
    ///
    /// # Panics
    ///
    /// Panics if the population has no such member, or `model` is not the one that the strategy was made for.
    #[track_caller]
    pub fn member<M: Module>(&self, model: &M, index: usize) -> M {
        assert!(self.range().contains(&index), "member: {index} is not among members {:?}", self.range());
        let [plus, minus] = self.perturbation.materialize(model, (index / 2) as u32);
        if index.is_multiple_of(2) { plus } else { minus }
    }

    /// Whether the model is in host memory: then chunks are evaluated on all CPU cores.
    pub(crate) fn is_on_host(&self) -> bool {
        self.perturbation.table.is_on_host()
    }

    /// Applies `f` to the work of parameters, each with its position; the results by position.
    ///
    /// Parameters in host memory are spread over all cores, and Burn's own operations run on one core each. If one parameter has more than a core's
    /// share of the values, its operations run on all cores. Results and counts are the same.
    pub(crate) fn map_parameters<T: Sync, R: Send>(
        &self,
        work: &[(usize, T)],
        f: impl Fn(&(usize, T)) -> R + Sync,
    ) -> Vec<Option<R>> {
        let entries = self.perturbation.table.entries();
        let sizes = || work.iter().map(|(position, _)| entries[*position].shape.iter().product::<usize>());
        let (all, largest) = (sizes().sum::<usize>(), sizes().max().unwrap_or(0));
        let cores = workers::pools().len();
        let in_order = cores == 1 || !self.is_on_host() || largest.saturating_mul(cores) > all;
        let results = if in_order { work.iter().map(f).collect() } else { workers::map_counted(work, f) };
        let mut by_position: Vec<Option<R>> = entries.iter().map(|_| None).collect();
        for ((position, _), result) in work.iter().zip(results) {
            by_position[*position] = Some(result);
        }
        by_position
    }

    /// Where the model is.
    pub fn device(&self) -> Device {
        self.perturbation.table.devices().next().cloned().unwrap_or_default()
    }

    /// These parameters were perturbed, in a loop that asks no scope.
    pub fn note_used(&self, parameters: &[ParamId]) {
        let mut uses = ParameterUse::of_none(self.perturbation.table.entries().len());
        for position in parameters.iter().filter_map(|id| self.perturbation.table.position(*id)) {
            uses[position] = ParameterUse::Other;
        }
        self.note_uses(uses);
    }

    /// `param` was evaluated as the model's, in a loop that asks no scope: `tell` refuses a model of other values.
    pub fn note_field<T: ParameterTensor>(&self, param: &Param<T>) {
        let table = &self.perturbation.table;
        if let Some(position) = table.position(param.id) {
            let mut found = vec![None; table.entries().len()];
            found[position] = Some(Field::of(param));
            self.note_fields(found);
        }
    }

    /// All parameters were perturbed: members were separate models.
    pub(crate) fn note_all_used(&self) {
        self.note_uses(vec![ParameterUse::Other; self.perturbation.table.entries().len()]);
    }

    /// Notes what a chunk did; returns the bytes that its layers returned.
    fn note_scope(&self, scope: ScopeUse) -> u64 {
        self.note_fields(scope.fields);
        self.note_uses(scope.uses);
        scope.output_bytes
    }

    /// The members were made of `model`.
    fn note_model<M: Module>(&self, model: &M) {
        let mut visitor = ModelFields { population: self, found: vec![None; self.perturbation.table.entries().len()] };
        model.visit(&mut visitor);
        self.note_fields(visitor.found);
    }

    fn note_fields(&self, found: Vec<Option<Field>>) {
        let mut fields = locked(&self.fields);
        fields.resize_with(found.len(), Vec::new);
        for (fields, found) in fields.iter_mut().zip(found) {
            if let Some(found) = found.filter(|found| !fields.iter().any(|field| field.shares(found))) {
                fields.push(found);
            }
        }
    }

    /// A parameter counts as perturbed only if every chunk used it.
    fn note_uses(&self, uses: Vec<ParameterUse>) {
        let mut all = locked(&self.uses);
        // Merging may panic: nothing is taken out before.
        let merged = match &*all {
            None => uses,
            Some(before) => before.iter().cloned().zip(uses).map(|(before, now)| self.merge(before, now)).collect(),
        };
        *all = Some(merged);
    }

    /// Merges how two chunks have used a parameter. An estimate projected onto the rows of one would lose the gradient of the other's.
    fn merge(&self, before: ParameterUse, now: ParameterUse) -> ParameterUse {
        match (before, now) {
            (ParameterUse::None, _) | (_, ParameterUse::None) => ParameterUse::None,
            (ParameterUse::Shared(before), ParameterUse::Shared(now)) => {
                let compared = cfg!(debug_assertions) || self.credit == Credit::Parts || locked(&self.inputs).is_some();
                assert!(
                    !compared || are_same(&before, &now),
                    "the rows given to forward_shared differ between chunks of one generation"
                );
                ParameterUse::Shared(before)
            }
            _ => ParameterUse::Other,
        }
    }
}

/// The first field of each parameter that is not in a clone.
struct ModelFields<'a> {
    population: &'a Population,
    found: Vec<Option<Field>>,
}

impl ModelFields<'_> {
    fn add<T: ParameterTensor>(&mut self, param: &Param<T>) {
        let table = &self.population.perturbation.table;
        if let Some(position) = table.position(param.id).filter(|position| !table.is_clone(*position, param)) {
            self.found[position].get_or_insert_with(|| Field::of(param));
        }
    }
}

impl ModuleVisitor for ModelFields<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param);
    }
}

/// Whether two chunks were given the same rows. Debug builds compare all of them; release builds the first and the last, in which
/// batches differ.
fn are_same(before: &Tensor<2>, now: &Tensor<2>) -> bool {
    let [rows, _] = before.dims();
    let ends = |x: &Tensor<2>| [0, rows - 1].map(|row| x.clone().slice_dim(0, row..row + 1).to_data());
    let compares_all = cfg!(debug_assertions) || rows == 0;
    before.dims() == now.dims()
        && if compares_all { before.to_data() == now.to_data() } else { ends(before) == ends(now) }
}
