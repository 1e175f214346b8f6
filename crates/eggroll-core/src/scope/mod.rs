//! The scope in which a model is a population: modules look up here how their parameters are perturbed.
//!
//! Inside [`Perturbation::run`], a module that asks [`active`] for one of its parameters gets the perturbation of the parameter's
//! strategy. Outside it gets `None` and computes as in `burn::nn`. This keeps `forward(x)` unchanged. The scope is thread-local and
//! restored on panic. A parameter is found by its identifier, which clones share: [`ParameterTable`](crate::ParameterTable#identifiers)
//! says which of them are perturbed.
//!
//! # Pools
//!
//! A rayon thread that waits for others may take any other job of its pool, and that job does not belong to the scope
//! that the thread waits under. The only thread of a pool does so too while it waits for another pool. [`suspended`]
//! removes the scope for such a wait. Eggroll uses it for all its own waits: in evaluations inside of evaluations,
//! perturbed layers of every noiser on every backend, other CPU kernels, and host environments of rollouts. It does
//! not cover waits of the program itself inside the scope, including Burn's operations on a CPU (products,
//! activations, sums). If a job taken there asks for a parameter of the scope, it is perturbed, and nothing detects
//! that. Call `evaluate` outside of pools that run other jobs with the same model, or wrap the wait in [`suspended`].
//! A job that evaluates the same model is refused. Chunks of members are safe: each begins in [`Enclosing::run`],
//! outside of all scopes of its thread. Threads outside of pools take no jobs.

mod active;
mod copies;
mod materialize;
pub(crate) mod member_state;
mod moved;
pub(crate) mod noise_store;

pub use active::{ActiveParameter, Bias, IntegerInput, active, try_active};
pub use copies::CloneError;
pub(crate) use copies::ReachedFields;
pub use moved::MovedRows;
use moved::Moves;

use crate::model::identity::{Field, ParameterTensor};
use crate::model::table::ParameterTable;
use crate::noise::noiser::Noiser;
use crate::noise::role::{ParameterNoise, Role};
use crate::ops::Input;
use crate::ops::integer::IntegerNoise;
use crate::rng::key::PairRange;
use crate::scope::noise_store::MaterializedNoise;
use crate::work::profile::{self, Component};
use burn::module::Param;
use burn::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How one model is perturbed in one noise epoch.
#[derive(Clone, Debug)]
pub struct Perturbation {
    /// The perturbation of single parameters.
    pub noiser: Arc<dyn Noiser>,
    /// The model's parameters.
    pub table: Arc<ParameterTable>,
    /// Seed of the noise.
    pub seed: u64,
    /// Noise epoch `t`.
    pub generation: u32,
    /// Noise scale σ of every parameter, before [its own factors](ParameterTable::sigma_of).
    pub sigma: f64,
    /// Noise that is held instead of drawn.
    pub held: Arc<MaterializedNoise>,
}

impl Perturbation {
    /// The noise of the parameter at `position` of the table.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn parameter(&self, position: usize) -> ParameterNoise {
        ParameterNoise {
            role: self.table.entries()[position].role,
            key: self.table.key(position, self.seed, self.generation),
            sigma: self.table.sigma_of(position, self.sigma),
            source: self.held.source(position),
            counts_signs: self.noiser.properties().counts_signs,
        }
    }

    /// The noise of `param`, which need not be in a scope; `None` if it does not belong to the model.
    pub(crate) fn noise_of<T: ParameterTensor>(&self, param: &Param<T>) -> Option<ParameterNoise> {
        let position = self.table.position(param.id).filter(|position| !self.table.is_clone(*position, param))?;
        Some(self.parameter(position))
    }

    /// The held noise of the integer parameter at `position`, for the members of `pairs`; `None` if it has none.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn integer(&self, position: usize, pairs: PairRange) -> Option<IntegerNoise> {
        let rank = match self.table.entries()[position].role {
            Role::LowRank { rank } => rank,
            _ => 0,
        };
        let sigma_shift = self.noiser.properties().integer?.sigma_shift();
        let noise = self.held.integer(position)?.clone();
        let first_pair = self.held.first_pair();
        Some(IntegerNoise { noise, first_pair, rank, sigma_shift, pairs })
    }

    /// Panics if a scope of the same model is active on this thread, or [encloses](Enclosing) it.
    #[track_caller]
    pub fn refuse_nesting(&self) {
        let path = |outer: &Arc<ParameterTable>| Some(self.table.shared_with(outer)?.path.clone());
        if let Some(path) = ENCLOSING.with_borrow(|tables| tables.iter().find_map(path)) {
            panic!(
                "evaluate is already running for this model around this one (parameter \"{path}\"): it cannot be nested"
            );
        }
        let shared = |outer: &Rc<Frame>| path(&outer.perturbation.table);
        if let Some(path) = FRAMES.with_borrow(|frames| frames.iter().find_map(shared)) {
            panic!(
                "evaluate is already running for this model on this thread (parameter \"{path}\"): it cannot be nested"
            );
        }
    }

    /// Runs `f` as the members of `pairs`; also returns which parameters were used.
    ///
    /// # Panics
    ///
    /// Panics if a scope of the same model is active on this thread already.
    #[track_caller]
    pub fn run<R>(&self, pairs: PairRange, f: impl FnOnce() -> R) -> (R, ScopeUse) {
        self.run_frame(pairs, Noting::default(), f)
    }

    /// [`run`](Self::run) with a check of rows: inputs of perturbed operations must have been noted as rows of members
    /// ([`note_rows`]). Shared rows whose number is a multiple of the members are thus refused. `rows` are noted
    /// already.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_members<R>(&self, pairs: PairRange, rows: Option<usize>, f: impl FnOnce() -> R) -> (R, ScopeUse) {
        self.run_frame(pairs, Noting { rows: Some(rows.into_iter().collect()), ..Noting::default() }, f)
    }

    /// Runs `f` as the two members of `pair` without noise; returns the inputs of every parameter, by position in the table.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_unperturbed<R>(&self, pair: u32, f: impl FnOnce() -> R) -> (R, Unperturbed) {
        let unperturbed = Self { sigma: 0.0, ..self.clone() };
        let (result, scope) =
            unperturbed.run_frame(PairRange::new(pair, 1), Noting { inputs: true, ..Noting::default() }, f);
        (result, Unperturbed { inputs: scope.inputs, depends_on_members: scope.depends_on_members })
    }

    /// Runs `f` as the members of `pairs` without noise. The outputs of layers for the rows of `moved` are moved by about their own size:
    /// members whose score changes depend on these rows.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_moved<R>(&self, pairs: PairRange, moved: Vec<MovedRows>, f: impl FnOnce() -> R) -> R {
        let moves = Moves::new(moved, self.table.entries().len());
        let unperturbed = Self { sigma: 0.0, ..self.clone() };
        unperturbed.run_frame(pairs, Noting { moves: Some(moves), ..Noting::default() }, f).0
    }

    #[track_caller]
    fn run_frame<R>(&self, pairs: PairRange, noting: Noting, f: impl FnOnce() -> R) -> (R, ScopeUse) {
        let entries = self.table.entries();
        let frame = Rc::new(Frame {
            perturbation: self.clone(),
            pairs,
            inputs: noting.inputs.then(|| RefCell::new(vec![Inputs::default(); entries.len()])),
            acts_later: Cell::new(false),
            depends_on_members: Cell::new(false),
            moves: noting.moves,
            checks: noting.rows.is_some(),
            noted: RefCell::new(noting.rows),
            returned: Cell::default(),
            uses: RefCell::new(ParameterUse::of_none(entries.len())),
            fields: RefCell::new(entries.iter().map(|_| ReachedFields::default()).collect()),
            output_bytes: Cell::new(0),
            number: FRAME.fetch_add(1, Relaxed),
        });
        let _guard = Guard::enter(frame.clone());
        let span = profile::span(Component::Fitness, 0);
        let result = f();
        span.end_waiting(|| self.table.devices().for_each(|device| drop(device.sync())));
        let fields = frame.fields.take().into_iter().map(ReachedFields::into_first).collect();
        let scope = ScopeUse {
            uses: frame.uses.take(),
            fields,
            output_bytes: frame.output_bytes.get(),
            inputs: frame.inputs.as_ref().map(RefCell::take).unwrap_or_default(),
            depends_on_members: frame.depends_on_members.get(),
        };
        (result, scope)
    }
}

/// What happened in a scope.
#[derive(Clone, Debug)]
pub struct ScopeUse {
    /// How parameters were used, by position in the table.
    pub uses: Vec<ParameterUse>,
    /// The field of the model through which each parameter was reached first, by position in the table.
    pub fields: Vec<Option<Field>>,
    /// Bytes that perturbed operations returned: measures what a member costs in memory.
    pub output_bytes: u64,
    /// Inputs of parameters, for [`Unperturbed`].
    inputs: Vec<Inputs>,
    depends_on_members: bool,
}

/// A forward without noise.
#[derive(Clone, Debug)]
pub struct Unperturbed {
    /// Inputs of every parameter, by position in the table.
    pub inputs: Vec<Inputs>,
    /// Whether the program asked which members these are ([`note_members_asked`]): others may have other data.
    pub depends_on_members: bool,
}

/// Inputs of a parameter in a forward without noise: the rows that estimates are projected onto.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The first member's input of every use, in order.
    pub uses: Vec<Input>,
    /// Whether the members differ in them.
    pub differ: bool,
    /// Whether the layer's outputs act on later steps of a sequence ([`acts_later`]).
    pub acts_later: bool,
}

/// How a scope used a parameter.
#[derive(Clone, Debug, Default)]
pub enum ParameterUse {
    /// Not at all.
    #[default]
    None,
    /// Once, on rows that all members share: `[rows, d_input]`.
    Shared(Box<Tensor<2>>),
    /// In any other way.
    Other,
}

impl ParameterUse {
    /// The entry of this many unused parameters. (Copies of a value would make memory checkers report the bytes that only other
    /// variants have.)
    pub fn of_none(parameters: usize) -> Vec<Self> {
        std::iter::repeat_with(Self::default).take(parameters).collect()
    }

    /// Whether the parameter was used.
    pub fn is_used(&self) -> bool {
        !matches!(self, Self::None)
    }

    fn add(&mut self, other: Self) {
        *self = match (std::mem::take(self), other) {
            (Self::None, other) => other,
            _ => Self::Other,
        };
    }
}

/// What a scope notes about the uses of its parameters, and applies to them apart from noise.
#[derive(Default)]
struct Noting {
    /// Leading sizes of known rows of members, if rows are checked.
    rows: Option<Vec<usize>>,
    /// Whether inputs of parameters are noted.
    inputs: bool,
    /// Rows that are moved, in place of noise.
    moves: Option<Moves>,
}

#[derive(Debug)]
struct Frame {
    perturbation: Perturbation,
    pairs: PairRange,
    /// Inputs of parameters, if they are noted.
    inputs: Option<RefCell<Vec<Inputs>>>,
    acts_later: Cell<bool>,
    depends_on_members: Cell<bool>,
    /// Rows that are moved.
    moves: Option<Moves>,
    /// Leading sizes of known rows of members; `None` once rows are known to belong to members, or if they are not
    /// checked.
    noted: RefCell<Option<Vec<usize>>>,
    /// Whether rows are checked, and the last numbers of rows that linear layers have returned for all members.
    checks: bool,
    returned: Cell<[usize; 4]>,
    uses: RefCell<Vec<ParameterUse>>,
    fields: RefCell<Vec<ReachedFields>>,
    output_bytes: Cell<u64>,
    /// No other scope of this process has it.
    number: u64,
}

static FRAME: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static FRAMES: RefCell<Vec<Rc<Frame>>> = const { RefCell::new(Vec::new()) };
    /// The models of [`Enclosing`] for this thread's job.
    static ENCLOSING: RefCell<Vec<Arc<ParameterTable>>> = const { RefCell::new(Vec::new()) };
}

/// Leaves a scope; holds the number of scopes of its thread.
struct Guard(usize);

impl Guard {
    #[track_caller]
    fn enter(frame: Rc<Frame>) -> Self {
        frame.perturbation.refuse_nesting();
        FRAMES.with_borrow_mut(|frames| {
            frames.push(frame);
            Self(frames.len())
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        FRAMES.with_borrow_mut(|frames| {
            let in_order = frames.len() == self.0 || std::thread::panicking();
            debug_assert!(in_order, "scopes of a thread end in another order than they began");
            frames.pop();
        });
    }
}

/// Whether this thread is in a scope.
pub fn is_active() -> bool {
    FRAMES.with_borrow(|frames| !frames.is_empty())
}

/// Notes for the scope of this thread, if there is one, that a tensor with this leading size holds rows of members.
pub fn note_rows(rows: usize) {
    FRAMES.with_borrow(|frames| {
        if let Some(frame) = frames.last() {
            frame.noted.borrow_mut().iter_mut().for_each(|noted| noted.push(rows));
        }
    });
}

/// Notes that the program has asked for the members of this thread's scope: their data may depend on it.
pub fn note_members_asked() {
    FRAMES.with_borrow(|frames| frames.iter().for_each(|frame| frame.depends_on_members.set(true)));
}

/// Runs a layer whose outputs act on later steps of its sequence, such as keys, values and the inputs of a recurrence. If every step has a
/// score, its weights are credited with later scores too. Outside of scopes it changes nothing.
///
/// A layer that is used once for each step, in order of time, must then get one row for each sequence.
///
/// `eggroll-nn`'s attention and recurrent layers use it; use it in your own layers too.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::scope::acts_later;
///
/// // A cumulative sum of what a layer makes of every step.
/// let z = Tensor::<3>::ones([1, 4, 2], &Device::flex()); // [sequences, steps, width]
/// let candidates = acts_later(|| z * 2.0);
/// assert_eq!(candidates.cumsum(1).max().into_scalar::<f32>(), 8.0);
/// ```
pub fn acts_later<R>(layer: impl FnOnce() -> R) -> R {
    let Some(frame) = FRAMES.with_borrow(|frames| frames.last().cloned()) else { return layer() };
    let before = frame.acts_later.replace(true);
    let result = layer();
    frame.acts_later.set(before);
    result
}

/// Runs `wait` outside of all scopes of this thread, and restores them afterwards, also on panic. For code inside a scope that
/// waits for a rayon pool: this thread may take a job there that does not belong to the scope.
pub fn suspended<R>(wait: impl FnOnce() -> R) -> R {
    Enclosing::default().run(wait)
}

/// The models whose evaluations enclose a point of the program. An evaluation passes them to its jobs, on any thread. In these jobs the
/// models are plain, and cannot be evaluated again.
#[derive(Clone, Debug, Default)]
pub struct Enclosing(Vec<Arc<ParameterTable>>);

impl Enclosing {
    /// The enclosing models of this thread.
    pub fn here() -> Self {
        let mut tables = ENCLOSING.with_borrow(Clone::clone);
        FRAMES.with_borrow(|frames| tables.extend(frames.iter().map(|frame| frame.perturbation.table.clone())));
        Self(tables)
    }

    /// Runs `job` inside of these evaluations, and outside of all scopes of this thread, which are restored afterwards, also on
    /// panic.
    pub fn run<R>(&self, job: impl FnOnce() -> R) -> R {
        struct Before(Vec<Rc<Frame>>, Vec<Arc<ParameterTable>>);

        impl Drop for Before {
            fn drop(&mut self) {
                FRAMES.set(std::mem::take(&mut self.0));
                ENCLOSING.set(std::mem::take(&mut self.1));
            }
        }

        let _before = Before(FRAMES.take(), ENCLOSING.replace(self.0.clone()));
        job()
    }
}
