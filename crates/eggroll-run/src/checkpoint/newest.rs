//! Loads one checkpoint, or the newest undamaged one.

use super::parts::SavedCheckpoint;
use super::{CARRIED, Checkpoints, MASTERS, MODEL, OPTIMIZER, SCHEDULE, TRANSFORMS};
use crate::difference::difference;
use crate::error::{Error, RunError, SavedError};
use burn::lr_scheduler::LrSchedulerRecord;
use burn::module::Module;
use burn::optim::OptimizerRecord;
use eggroll_core::NoiserConfig;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, KeptTensors, RecordError, StrategyRecord};
use std::io::ErrorKind;
use std::path::Path;

impl Checkpoints {
    /// Loads the latest checkpoint into `model`, whose values matter only as the anchor of decay ([`load`]). `None` if there is no checkpoint.
    /// A damaged one is skipped, with a warning on standard error, for the newest undamaged one, unless [`with_fallback`](Self::with_fallback)
    /// says otherwise.
    ///
    /// # Errors
    ///
    /// As [`load`], for the latest checkpoint if all are damaged; [`RunError::OtherRun`] for a run with other updates or other
    /// data ([`with_config`](Self::with_config), [`with_data`](Self::with_data)).
    pub fn load_latest<M: Module>(&self, model: M) -> Result<Option<(EvolutionStrategy, M)>, Error> {
        self.newest(|saved| self.load_saved(saved, model.clone()))
    }

    /// Loads the latest checkpoint of [`save_with_state`](Self::save_with_state) into `model` and `carried`, whose values matter
    /// only as the anchor of decay ([`load`]). `None` if there is no checkpoint.
    ///
    /// # Errors
    ///
    /// As [`load_latest`](Self::load_latest); also if the checkpoint has no state of members.
    pub fn load_latest_with_state<M: Module, C: Module>(
        &self,
        model: M,
        carried: C,
    ) -> Result<Option<(EvolutionStrategy, M, C)>, Error> {
        self.newest(|saved| {
            let (strategy, model) = self.load_saved(saved, model.clone())?;
            Ok((strategy, model, saved.module(CARRIED, carried.clone())?))
        })
    }

    /// Loads the newest checkpoint that is not damaged.
    fn newest<T>(&self, load: impl Fn(&SavedCheckpoint) -> Result<T, Error>) -> Result<Option<T>, Error> {
        for path in self.odd()? {
            crate::print_note!("warning: {} is passed over: it is not the folder of a checkpoint", path.display());
        }
        let mut first = None;
        for path in self.list()?.iter().rev() {
            match SavedCheckpoint::open(path).and_then(|saved| load(&saved)) {
                Ok(loaded) => return Ok(Some(loaded)),
                Err(error) if self.fallback && is_damage(&error) => {
                    crate::print_note!("warning: a damaged checkpoint is passed over: {error}");
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        first.map_or(Ok(None), Err)
    }

    fn load_saved<M: Module>(&self, saved: &SavedCheckpoint, model: M) -> Result<(EvolutionStrategy, M), Error> {
        if let Some(run) = &self.run {
            same_updates(saved, run)?;
        }
        if let (Some(found), Some(expected)) = (&saved.state.data, &self.data)
            && found != expected
        {
            let (path, field) = (saved.path(), "data".to_owned());
            return Err(RunError::OtherRun { path, field, found: found.clone(), expected: expected.clone() }.into());
        }
        load_saved(saved, self.limits.as_ref(), self.noiser.as_ref(), Start::Model(&model))
    }
}

/// Whether the error means a damaged checkpoint, not one of another run, model or version.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => {
            use ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, UnexpectedEof};
            matches!(source.kind(), NotFound | UnexpectedEof | InvalidData | IsADirectory | NotADirectory)
        }
        Error::Saved(error) => {
            use SavedError::{Checkpoint, Checksum, FileLength};
            matches!(error, Checkpoint { .. } | Checksum { .. } | FileLength { .. })
        }
        _ => false,
    }
}

/// Loads one checkpoint folder into `model`, whose values do not matter in most cases. Only with
/// [decay](EvolutionStrategyConfig::with_anchor_decay) towards the initial parameters, `model` must be the initial model, as a checkpoint holds
/// only its digest.
///
/// # Errors
///
/// Each with the file and the values:
///
/// | error | of |
/// |---|---|
/// | [`Error::Io`] | a file that is missing or cannot be read |
/// | [`SavedError::Checksum`], [`SavedError::FileLength`] | a damaged file |
/// | [`SavedError::Format`] | another version of the format, also the first one, which had no checksums |
/// | [`SavedError::NoiseStream`] | noise that this version draws differently |
/// | [`eggroll_train::Error::Noiser`] | a noiser that the file only names: [`Checkpoints::with_noiser`] gives it |
/// | [`SavedError::OtherModel`] | a model with other parameters, or the same ones in another order |
/// | [`SavedError::Start`] | a `model` that is not the anchor of decay |
/// | [`RunError::OtherRun`] | a checkpoint under the name of another generation |
/// | [`SavedError::Checkpoint`] | a file that cannot be parsed although its checksum matches |
pub fn load<M: Module>(path: &Path, model: M) -> Result<(EvolutionStrategy, M), Error> {
    load_saved(&SavedCheckpoint::open(path)?, None, None, Start::Model(&model))
}

/// As [`load`], with the chunk size, memory limit and anchor of a strategy of the same run; refuses a checkpoint of another one.
pub(crate) fn load_under<M: Module>(
    path: &Path,
    strategy: &EvolutionStrategy,
    model: &M,
) -> Result<(EvolutionStrategy, M), Error> {
    let saved = SavedCheckpoint::open(path)?;
    same_updates(&saved, strategy.config())?;
    load_saved(&saved, Some(strategy.config()), None, Start::Strategy(strategy, model))
}

/// Refuses the checkpoint of a run with other updates.
fn same_updates(saved: &SavedCheckpoint, config: &EvolutionStrategyConfig) -> Result<(), Error> {
    match difference(&saved.state.config.of_updates(), &config.of_updates()) {
        Some((field, found, expected)) => Err(RunError::OtherRun { path: saved.path(), field, found, expected }.into()),
        None => Ok(()),
    }
}

/// The module that a model is loaded into, and the source of the anchor.
enum Start<'a, M> {
    /// The model.
    Model(&'a M),
    /// A strategy.
    Strategy(&'a EvolutionStrategy, &'a M),
}

impl<M: Module> Start<'_, M> {
    fn model(&self) -> M {
        match *self {
            Self::Model(model) => model.clone(),
            Self::Strategy(_, model) => model.clone(),
        }
    }

    fn anchored(&self, strategy: EvolutionStrategy) -> Result<EvolutionStrategy, Error> {
        match *self {
            Self::Model(model) => Ok(strategy.try_with_anchor(model)?),
            Self::Strategy(other, _) => Ok(strategy.with_anchor_of(other)),
        }
    }
}

fn load_saved<M: Module>(
    saved: &SavedCheckpoint,
    limits: Option<&EvolutionStrategyConfig>,
    noiser: Option<&NoiserConfig>,
    start: Start<'_, M>,
) -> Result<(EvolutionStrategy, M), Error> {
    let state = &saved.state;
    let mut config = match limits {
        Some(given) => state.config.with_limits_of(given).with_functions_of(given),
        None => state.config.clone(),
    };
    let custom = |noiser: &NoiserConfig| matches!(noiser, NoiserConfig::Custom(_));
    let of_limits = limits.map(|limits| &limits.noiser).filter(|given| custom(given) || custom(&config.noiser));
    config.noiser = state.config.noiser.restored(noiser.or(of_limits))?;
    let (found, known) = (state.noise_stream, state.config.noiser.stream_version());
    if found != known {
        return Err(SavedError::NoiseStream { path: saved.path(), found, known }.into());
    }
    let model = saved.module(MODEL, start.model())?;
    let strategy = match config.try_init(&model) {
        Err(eggroll_train::Error::NonFinite(error)) => {
            return Err(SavedError::Checkpoint { path: saved.file(MODEL), reason: error.to_string() }.into());
        }
        strategy => start.anchored(strategy?)?,
    };
    // Tensors of the loaded model, as targets to load into.
    let kept = |name: &str, own: Option<KeptTensors>, unknown: &str| match own {
        Some(own) => saved.module(name, own).map(Some),
        None if saved.has(name) => {
            Err(SavedError::Checkpoint { path: saved.file(name), reason: unknown.to_owned() }.into())
        }
        None => Ok(None),
    };
    let own = strategy.to_record();
    let masters =
        kept(MASTERS, own.masters, "there are f32 master weights, but no parameter of half precision that needs them")?;
    let transforms = kept(TRANSFORMS, own.transforms, "transforms remember something, and this strategy has none")?;
    let record = StrategyRecord {
        generation: state.generation,
        optimizer: saved.read(OPTIMIZER, OptimizerRecord::from_bytes)?,
        schedule: saved.read(SCHEDULE, LrSchedulerRecord::from_bytes)?,
        settings: state.settings,
        spreads: state.spreads.clone(),
        anchor: state.anchor.clone(),
        masters,
        transforms,
        rows: state.rows.clone(),
    };
    let refuse = |error: RecordError| match error {
        RecordError::Anchor { .. } => SavedError::Start { path: saved.path(), reason: error.to_string() },
        RecordError::Masters(_) => SavedError::Checkpoint { path: saved.file(MASTERS), reason: error.to_string() },
        RecordError::Transforms(_) => {
            SavedError::Checkpoint { path: saved.file(TRANSFORMS), reason: error.to_string() }
        }
        RecordError::Spreads(_) | RecordError::Rows { .. } => {
            SavedError::Checkpoint { path: saved.path(), reason: error.to_string() }
        }
        _ => SavedError::Checkpoint { path: saved.file(OPTIMIZER), reason: error.to_string() },
    };
    Ok((strategy.try_load_record(record).map_err(refuse)?, model))
}
