//! Replay logs: a run stored as its first model, all fitness values, and the settings changed while it ran.
//!
//! Noise is a pure function of the seed, so the fitness of every generation suffices to rebuild the model. It takes four bytes for each
//! member, or a fifth of a byte for each pair if only integers are trained. A checkpoint is much larger and holds one generation.

mod log;
mod record;
mod verify;

use crate::append_file::Tail;
use crate::digest::parameter_digest;
use crate::durable;
use crate::error::{Error, SavedError, UserError};
use crate::lock::Lock;
use burn::module::Module;
use eggroll_core::ParameterKind;
use eggroll_train::{Credit, EvolutionStrategy, Fitness, Population, RunningSettings, TellError};
use log::Log;
pub(crate) use record::Recorded;
use record::{Check, FORMAT, Header, encode_settings};
pub use verify::{Verified, VerifyConfig, verify};

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An append-only log of fitness, one record for each generation.
///
/// A record is handed to the system at once: a killed process leaves all appended records. It may also leave a part of one, which is cut
/// off when the log is opened again. [`sync`](Self::sync) also survives a power failure; call it before you save a checkpoint from which
/// the log will continue.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::{ReplayLog, parameter_digest, replay};
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("run.replay");
/// let first = LinearConfig::new(2, 1).init(&Device::flex());
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(8);
///
/// let (mut strategy, mut model) = (config.try_init(&first)?, first.clone());
/// let mut log = ReplayLog::create(&path, &strategy, &model)?;
/// for _ in 0..5 {
///     let population = strategy.ask();
///     let x = Tensor::<2>::ones([1, 2], &Device::flex());
///     let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
///     strategy.tell(&mut model, population, fitness.clone())?;
///     log.append(&strategy, &fitness)?;
/// }
///
/// let (strategy, replayed) = replay(&path, first, None)?;
/// assert_eq!(strategy.generation(), 5);
/// assert_eq!(parameter_digest(&replayed), parameter_digest(&model));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReplayLog {
    path: PathBuf,
    tail: Tail,
    check: Check,
    /// Generation of the next record.
    next: u64,
    /// The logged settings that were changed while the strategy ran.
    settings: RunningSettings,
    _lock: Lock,
}

impl ReplayLog {
    /// Begins a log of the fitness that `strategy` will be told, from its generation on; `model` is the model of that generation. No other process can
    /// write it until it is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file exists already, or cannot be written; [`RunError::InUse`](crate::RunError::InUse).
    pub fn create<M: Module>(path: impl Into<PathBuf>, strategy: &EvolutionStrategy, model: &M) -> Result<Self, Error> {
        let path = path.into();
        if path.exists() {
            return Err(Error::io(&path)(io::ErrorKind::AlreadyExists.into()));
        }
        Self::begin(Lock::file(&path)?, path, strategy, model)
    }

    /// Continues a log, as [`resume`](Self::resume) does, or begins one if there is none. A log that begins at `strategy`'s generation belongs
    /// to a run that never reached a checkpoint, or has lost them. Unless it is empty, it is moved to `NAME.previous-1` and so on, and a new
    /// one begins.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create) and [`resume`](Self::resume).
    pub fn open<M: Module>(path: impl Into<PathBuf>, strategy: &EvolutionStrategy, model: &M) -> Result<Self, Error> {
        let path = path.into();
        let lock = Lock::file(&path)?;
        if !path.exists() {
            return Self::begin(lock, path, strategy, model);
        }
        let log = Log::read(&path)?;
        if log.header.first != strategy.generation() {
            drop(log);
            return Self::go_on(lock, path, strategy);
        }
        if log.has_records() {
            log.check_strategy(strategy)?;
            // The run begins again: its old log may be all that remains of it.
            durable::move_aside(&path)?;
        }
        Self::begin(lock, path, strategy, model)
    }

    fn begin<M: Module>(lock: Lock, path: PathBuf, strategy: &EvolutionStrategy, model: &M) -> Result<Self, Error> {
        let header = Header {
            format: FORMAT,
            noise_stream: strategy.config().noiser.stream_version(),
            first: strategy.generation(),
            model: parameter_digest(model),
            config: strategy.config().clone(),
            spreads: strategy.parameters().spreads().map(<[f64]>::to_vec),
            anchor: strategy.anchor_digest().map(str::to_owned),
            masters: strategy.master_digest(),
        };
        let refuse =
            |error: serde_json::Error| SavedError::Checkpoint { path: path.clone(), reason: error.to_string() };
        let (bytes, check) = header.encode().map_err(refuse)?;
        // Complete or absent: a cut-off header could not be told from another file.
        durable::replace(&path, &bytes)?;
        let tail = Tail::open(&path).map_err(Error::io(&path))?;
        Ok(Self { path, tail, check, next: header.first, settings: RunningSettings::default(), _lock: lock })
    }

    /// Continues a log at `strategy`'s generation, for example after loading a checkpoint. Records of that generation and
    /// later ones, from a run that got further, are dropped, and so is a record that was cut off.
    ///
    /// # Errors
    ///
    /// As [`replay`]; [`SavedError::ReplayConfig`] or [`SavedError::Start`] for another strategy, [`SavedError::ReplayRange`] if the log does not reach its
    /// generation.
    pub fn resume(path: impl Into<PathBuf>, strategy: &EvolutionStrategy) -> Result<Self, Error> {
        let path = path.into();
        Self::go_on(Lock::file(&path)?, path, strategy)
    }

    fn go_on(lock: Lock, path: PathBuf, strategy: &EvolutionStrategy) -> Result<Self, Error> {
        let next = strategy.generation();
        let (check, len, settings) = {
            let log = Log::read(&path)?;
            log.check_strategy(strategy)?;
            let mut records = log.records();
            records.skip_until(next)?;
            (log.check, records.offset as u64, records.settings)
        };
        let tail = Tail::open_at(&path, len).map_err(Error::io(&path))?;
        Ok(Self { path, tail, check, next, settings, _lock: lock })
    }

    /// Appends the fitness that `strategy` has just been told.
    ///
    /// # Errors
    ///
    /// [`SavedError::ReplayOrder`] if it has been told another generation than the next one, and [`TellError::FitnessLength`]: the log is then
    /// unchanged. After [`Error::Io`], for example on a full disk, the record is written with the next one, or by [`sync`](Self::sync).
    pub fn append(&mut self, strategy: &EvolutionStrategy, fitness: &Fitness) -> Result<(), Error> {
        let told = strategy.report().map(|report| (report.generation, report.stepped, report.sigma));
        let Some((_, stepped, sigma)) = told.filter(|(generation, ..)| *generation == self.next) else {
            let found = told.map(|(generation, ..)| generation);
            return Err(SavedError::ReplayOrder { path: self.path.clone(), found, expected: self.next }.into());
        };
        let (found, tasks, population) = (fitness.values().len(), fitness.tasks(), strategy.config().population_size);
        if found != population * tasks {
            return Err(TellError::FitnessLength { found, tasks, population }.into());
        }
        let settings = strategy.told_settings();
        if settings != self.settings {
            self.tail.push(&encode_settings(&settings, &self.check, self.next));
            self.settings = settings;
        }
        self.tail.push(&recorded(strategy, fitness, stepped, sigma).encode(&self.check, self.next));
        self.next += 1;
        self.tail.flush().map_err(Error::io(&self.path))
    }

    /// Flushes all records to disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.tail.sync().map_err(Error::io(&self.path))
    }
}

/// Accepts logged scores for an update, or refuses it if the update depends on the inputs of layers.
///
/// # Errors
///
/// [`SavedError::ReplayCredit`] with the parts.
fn by_fitness_alone((credit, members): (Credit, usize), scores: Recorded) -> Result<Fitness, Error> {
    let parts = scores.parts(members);
    match credit.projects(parts) {
        false => Ok(scores.into_fitness(members)),
        true => Err(SavedError::ReplayCredit { credit: credit.to_string(), parts }.into()),
    }
}

/// The record of a fitness: only the signs of pairs, if they make the same update.
fn recorded(strategy: &EvolutionStrategy, fitness: &Fitness, stepped: bool, sigma: f64) -> Recorded {
    let population = strategy.config().population_size;
    let by_part = strategy.credit().projects(fitness.tasks());
    let floats = strategy.parameters().trained(ParameterKind::Float).next().is_some();
    if floats || by_part || !strategy.votes_are_signs() {
        return Recorded::all(fitness);
    }
    let signs = Recorded::Signs(fitness.pair_signs(population));
    let weights = strategy.config().pair_weights(&signs.clone().into_fitness(population), sigma);
    if weights.is_some() == stepped { signs } else { Recorded::all(fitness) }
}

/// The generations of a replay log; a record that was cut off does not count.
///
/// # Errors
///
/// As [`replay`].
pub fn replay_range(path: &Path) -> Result<Range<u64>, Error> {
    let log = Log::read(path)?;
    let mut records = log.records();
    while records.next()?.is_some() {}
    Ok(log.header.first..records.generation)
}

/// Rebuilds the model of generation `until`, or of the log's last generation, from the first model and the fitness of a log.
/// Model and strategy equal the trained ones, bit for bit. Reads the whole log; a record that was cut off does not count.
///
/// # Errors
///
/// Each with the file and the values:
///
/// | error | of |
/// |---|---|
/// | [`Error::Io`], [`SavedError::Checkpoint`] | a file that cannot be read, or is not a log |
/// | [`SavedError::Checksum`] | a damaged header |
/// | [`SavedError::ReplayRecord`] | a damaged record with others after it |
/// | [`SavedError::Format`], [`SavedError::NoiseStream`] | another version |
/// | [`eggroll_train::Error::Noiser`] | a noiser that the log only names: [`replay_from`] takes a strategy that has it |
/// | [`SavedError::OtherModel`] | another first model |
/// | [`SavedError::Start`] | spreads of relative noise, an anchor of the decay, or f32 master weights, of another model: [`replay_from`] takes a strategy that has them |
/// | [`SavedError::ReplayCredit`] | updates from the scores of parts, which depend on the inputs of layers: [`replay_evaluated`] evaluates again |
/// | [`SavedError::ReplayRange`] | a generation that the log does not have; also if it does not begin with generation 0: [`replay_from`] |
pub fn replay<M: Module>(path: &Path, first: M, until: Option<u64>) -> Result<(EvolutionStrategy, M), Error> {
    let log = Log::read(path)?;
    let strategy = log.header.config.try_init(&first)?;
    log.check_start(&strategy)?;
    let credit = (strategy.credit(), strategy.config().population_size);
    log.replay(strategy, first, until, |_, _, scores| by_fitness_alone(credit, scores))
}

/// Continues with `strategy` and `model`, for example of a checkpoint, as [`replay`] does from the beginning.
///
/// # Errors
///
/// As [`replay`], and [`SavedError::ReplayConfig`] or [`SavedError::Start`] for another strategy.
pub fn replay_from<M: Module>(
    path: &Path,
    strategy: EvolutionStrategy,
    model: M,
    until: Option<u64>,
) -> Result<(EvolutionStrategy, M), Error> {
    let log = Log::read(path)?;
    log.check_strategy(&strategy)?;
    let credit = (strategy.credit(), strategy.config().population_size);
    log.replay(strategy, model, until, |_, _, scores| by_fitness_alone(credit, scores))
}

/// [`replay_from`] for a model that makes its own steps, such as one whose weights are not floats. `tell` is called for every generation, and must complete it
/// ([`advance`](EvolutionStrategy::advance)). `first` is the log's initial module.
///
/// # Errors
///
/// As [`replay_from`], and [`Error::User`] with the error of `tell`.
pub fn replay_with<M: Module>(
    path: &Path,
    strategy: EvolutionStrategy,
    first: &M,
    until: Option<u64>,
    mut tell: impl FnMut(&mut EvolutionStrategy, Population, Fitness) -> Result<(), UserError>,
) -> Result<EvolutionStrategy, Error> {
    let log = Log::read(path)?;
    log.check_strategy(&strategy)?;
    log.check_model(&strategy, first)?;
    let credit = (strategy.credit(), strategy.config().population_size);
    log.replay_steps(strategy, until, |strategy, population, scores| {
        let fitness = by_fitness_alone(credit, scores)?;
        tell(strategy, population, fitness).map_err(Error::User)
    })
}

/// [`replay_from`] for [credit by part](Credit), whose estimates depend on the inputs of layers. It evaluates every generation again, as
/// the run did, and requires the logged fitness.
///
/// It takes as long as the run. It proves that data, score and program are the same as in the run. The fitness of every generation equals the
/// logged one, and the model the run's, bit for bit. If all members get the same data, `evaluate` may score only the first members
/// ([`slice`](Population::slice)). Their scores are compared, and the others are taken from the log.
///
/// # Errors
///
/// As [`replay_from`], except for the credit; [`SavedError::ReplayFitness`] for the first generation whose fitness differs, and [`Error::User`] with the
/// error of `evaluate`.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::{Linear, LinearConfig};
/// use eggroll_run::{ReplayLog, UserError, parameter_digest, replay_evaluated};
/// use eggroll_train::{EvolutionStrategyConfig, Fitness, Population};
///
/// # fn main() -> Result<(), UserError> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("run.replay");
/// let first = LinearConfig::new(8, 1).init(&Device::flex());
/// let evaluate = |model: &Linear, population: &Population| -> Result<Fitness, UserError> {
///     let x = Tensor::<2>::ones([3, 8], &Device::flex()) * population.generation() as f32;
///     Ok(population.evaluate(|members| model.forward_shared(x.clone()).reshape([members.count(), 3]))) // a score for every row
/// };
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(8);
///
/// let (mut strategy, mut model) = (config.try_init(&first)?, first.clone());
/// let mut log = ReplayLog::create(&path, &strategy, &model)?;
/// for _ in 0..5 {
///     let population = strategy.ask();
///     let fitness = evaluate(&model, &population)?;
///     strategy.tell(&mut model, population, fitness.clone())?;
///     log.append(&strategy, &fitness)?;
/// }
/// let (_, again) = replay_evaluated(&path, config.try_init(&first)?, first, None, evaluate)?;
/// assert_eq!(parameter_digest(&again), parameter_digest(&model));
/// # Ok(())
/// # }
/// ```
pub fn replay_evaluated<M: Module>(
    path: &Path,
    strategy: EvolutionStrategy,
    model: M,
    until: Option<u64>,
    mut evaluate: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
) -> Result<(EvolutionStrategy, M), Error> {
    let log = Log::read(path)?;
    log.check_strategy(&strategy)?;
    log.replay(strategy, model, until, |model, population, scores| {
        let fitness = evaluate(model, population).map_err(Error::User)?;
        let (members, count) = (fitness.values().len() / fitness.tasks(), population.count());
        verify::compare(path, &scores, &fitness, population.generation(), &(0..members.min(count)), count)?;
        Ok(if members == count { fitness } else { scores.into_fitness(count).with_steps(fitness.steps()) })
    })
}
