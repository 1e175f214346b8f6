//! Replay logs: a run as its first model, all fitness values, and the settings that were changed while it ran.
//!
//! Noise is a pure function of the seed, so the fitness of every generation is all that is needed to make the model again: four bytes a
//! member, or a fifth of a byte a pair where all that is trained are integers. A checkpoint holds one generation and much more.

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

/// A log of fitness that is appended to, one record for each generation.
///
/// A record is handed to the system at once: a process that is killed leaves all records that were appended, and perhaps a part of one,
/// which is cut off when the log is opened again. [`sync`](Self::sync) also survives a power failure; call it before a checkpoint is saved
/// that the log is to continue from.
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
    /// Settings that were changed while the strategy ran, as far as they are logged.
    settings: RunningSettings,
    _lock: Lock,
}

impl ReplayLog {
    /// Begins a log of the fitness that `strategy` will be told, from its generation on; `model` is the model of that generation. Nobody else can write
    /// it until it is dropped.
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

    /// Continues a log, as [`resume`](Self::resume) does, or begins one if there is none. A log that begins where `strategy` stands is of a run
    /// that never reached a checkpoint, or has lost them: it is moved to `NAME.previous-1` and so on, unless it is empty, and a new one begins.
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
            // The run begins again: what it has logged before can be all that is left of it.
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
        // Whole or not there: a header that is cut off could not be told from another file.
        durable::replace(&path, &bytes)?;
        let tail = Tail::open(&path).map_err(Error::io(&path))?;
        Ok(Self { path, tail, check, next: header.first, settings: RunningSettings::default(), _lock: lock })
    }

    /// Continues a log where `strategy` stands, as after loading a checkpoint: records of its generation and later ones, by a
    /// run that got further, are dropped, and so is a record that was cut off.
    ///
    /// # Errors
    ///
    /// As [`replay`]; [`SavedError::ReplayConfig`] or [`SavedError::Start`] if the strategy is another one, [`SavedError::ReplayRange`] if the log does not reach its
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
    /// [`SavedError::ReplayOrder`] if it has been told another generation than is due here, [`TellError::FitnessLength`]: the log is as before
    /// then. [`Error::Io`], as on a full disk: the record is written with the next one, or by [`sync`](Self::sync).
    pub fn append(&mut self, strategy: &EvolutionStrategy, fitness: &Fitness) -> Result<(), Error> {
        let told = strategy.report().map(|report| (report.generation, report.stepped, report.sigma));
        let Some((_, stepped, sigma)) = told.filter(|(generation, ..)| *generation == self.next) else {
            let found = told.map(|(generation, ..)| generation);
            return Err(SavedError::ReplayOrder { path: self.path.clone(), found, expected: self.next }.into());
        };
        let (found, population) = (fitness.values().len(), strategy.config().population_size);
        if found == 0 || !found.is_multiple_of(population) {
            return Err(TellError::FitnessLength { found, population }.into());
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

/// Takes a logged fitness for an update, or refuses it if the update depends on what layers were given.
///
/// # Errors
///
/// [`SavedError::ReplayCredit`] with the parts.
fn by_fitness_alone((credit, members): (Credit, usize), fitness: Fitness) -> Result<Fitness, Error> {
    let parts = fitness.values().len() / members;
    match credit.projects(parts) {
        false => Ok(fitness),
        true => Err(SavedError::ReplayCredit { credit: credit.to_string(), parts }.into()),
    }
}

/// What to keep of a fitness: the signs of pairs if they make the same update.
fn recorded(strategy: &EvolutionStrategy, fitness: &Fitness, stepped: bool, sigma: f64) -> Recorded {
    if strategy.parameters().trained(ParameterKind::Float).next().is_some() || !strategy.votes_are_signs() {
        return Recorded::all(fitness);
    }
    let signs = Recorded::Signs(fitness.pair_signs(strategy.config().population_size));
    let weights = strategy.config().pair_weights(&signs.clone().into_fitness(), sigma);
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

/// Makes the model of generation `until` from the first model and the fitness of a log, or that of the log's last generation: the
/// same as trained, bit for bit, and the strategy with it. Reads the log as a whole; a record that was cut off does not count.
///
/// # Errors
///
/// Each with the file and the values:
///
/// | error | of |
/// |---|---|
/// | [`Error::Io`], [`SavedError::Checkpoint`] | a file that cannot be read, or is no log |
/// | [`SavedError::Checksum`] | a damaged header |
/// | [`SavedError::ReplayRecord`] | a damaged record with others behind it |
/// | [`SavedError::Format`], [`SavedError::NoiseStream`] | another version |
/// | [`eggroll_train::Error::Noiser`] | a noiser that the log only names: [`replay_from`] takes a strategy that has it |
/// | [`SavedError::OtherModel`] | another first model |
/// | [`SavedError::Start`] | spreads that noise is relative to, an anchor of the decay, or f32 master weights, of another model: [`replay_from`] takes a strategy that has them |
/// | [`SavedError::ReplayCredit`] | updates from the scores of parts, which depend on what layers were given: [`replay_evaluated`] makes them again |
/// | [`SavedError::ReplayRange`] | a generation that the log does not have; also if it does not begin with generation 0: [`replay_from`] |
pub fn replay<M: Module>(path: &Path, first: M, until: Option<u64>) -> Result<(EvolutionStrategy, M), Error> {
    let log = Log::read(path)?;
    let strategy = log.header.config.try_init(&first)?;
    log.check_start(&strategy)?;
    let credit = (strategy.credit(), strategy.config().population_size);
    log.replay(strategy, first, until, |_, _, scores| by_fitness_alone(credit, scores.into_fitness()))
}

/// Continues with `strategy` and `model`, of a checkpoint for example, as [`replay`] does from the beginning.
///
/// # Errors
///
/// As [`replay`], and [`SavedError::ReplayConfig`] or [`SavedError::Start`] if the strategy is another one.
pub fn replay_from<M: Module>(
    path: &Path,
    strategy: EvolutionStrategy,
    model: M,
    until: Option<u64>,
) -> Result<(EvolutionStrategy, M), Error> {
    let log = Log::read(path)?;
    log.check_strategy(&strategy)?;
    let credit = (strategy.credit(), strategy.config().population_size);
    log.replay(strategy, model, until, |_, _, scores| by_fitness_alone(credit, scores.into_fitness()))
}

/// [`replay_from`] for a model that makes its steps itself, as one does whose weights are no floats: `tell` is called for every generation, and must complete it
/// ([`advance`](EvolutionStrategy::advance)). `first` is the module that the log began with.
///
/// # Errors
///
/// As [`replay_from`], and [`Error::User`] with what `tell` returned.
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
        let fitness = by_fitness_alone(credit, scores.into_fitness())?;
        tell(strategy, population, fitness).map_err(Error::User)
    })
}

/// [`replay_from`] for [credit by part](Credit), whose estimates depend on what layers were given: evaluates every generation again, as the
/// run did, and requires the logged fitness.
///
/// It takes as long as the run. What it shows is that data, score and program are those of the run: the fitness of every generation is the logged
/// one, and the model that of the run, bit for bit. Where members are all given the same data, the first of them
/// ([`slice`](Population::slice)) are enough, whose scores are compared; the others' are then taken from the log.
///
/// # Errors
///
/// As [`replay_from`], but for the credit, [`SavedError::ReplayFitness`] for the first generation whose fitness is another one, and [`Error::User`] with
/// what `evaluate` returned.
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
        Ok(if members == count { fitness } else { scores.completing(&fitness) })
    })
}
