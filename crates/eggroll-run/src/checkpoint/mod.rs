//! Checkpoints: everything needed to continue, bit for bit.
//!
//! A checkpoint is a folder `generation-N`:
//!
//! | file | what it is |
//! |---|---|
//! | `model.bpk` | the model: a Burn record that plain Burn loads |
//! | `optimizer.bpk`, `schedule.bpk` | records of burn-optim |
//! | `carried.bpk` | what members keep, if they do |
//! | `strategy.json` | format, generation, configuration, version of the noise stream; length of every part, names, shapes and kinds of its tensors |
//! | `SHA256SUMS` | checksums of all of them; `sha256sum -c SHA256SUMS` checks them too |
//!
//! It is written under another name, flushed and renamed, so that a folder of that name is complete or absent. One that is replaced is
//! renamed first and counts until its successor is there; one that is dropped is renamed before it is removed.

mod names;
mod parameters;
mod parts;
mod state;

#[cfg(any(feature = "learner", feature = "nats"))]
pub(crate) use names::generation_of;

use crate::durable;
use crate::error::{Error, SavedError};
use burn::lr_scheduler::LrSchedulerRecord;
use burn::module::Module;
use burn::optim::OptimizerRecord;
use eggroll_core::NoiserConfig;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, StrategyRecord};
use names::{Hidden, PREFIX, is_checkpoint};
use parts::{Draft, Saved};
use state::State;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MODEL: &str = "model.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const SCHEDULE: &str = "schedule.bpk";
const CARRIED: &str = "carried.bpk";

/// A folder of checkpoints, the latest few kept.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::Device;
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::Checkpoints;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let layer = LinearConfig::new(2, 1);
/// let model = layer.init(&Device::flex());
/// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
///
/// let checkpoints = Checkpoints::new(folder.path());
/// checkpoints.save(&strategy, &model)?;
/// let (strategy, model) = checkpoints.load_latest(layer.init(&Device::flex()))?.expect("saved above");
/// assert_eq!(strategy.generation(), 0);
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
    /// Whose chunks and memory limit are used, if not those that were saved.
    limits: Option<EvolutionStrategyConfig>,
    /// What continues where a checkpoint only names a noiser.
    noiser: Option<NoiserConfig>,
}

impl Checkpoints {
    /// Checkpoints in `folder`, the latest two kept. The folder is made when needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder: PathBuf = folder.into();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        Self { folder, keep: 2, limits: None, noiser: None }
    }

    /// Sets how many checkpoints are kept, at least one.
    pub fn with_keep(mut self, keep: usize) -> Self {
        self.keep = keep.max(1);
        self
    }

    /// Loads strategies with the chunk and the memory limit of `config` in place of those that were saved: a run may go on where there is
    /// less memory, or more. They change no update.
    pub fn with_limits_of(mut self, config: &EvolutionStrategyConfig) -> Self {
        self.limits = Some(config.clone());
        self
    }

    /// Loads strategies of this noiser only, and with it: for a [`CustomNoiser`](eggroll_core::CustomNoiser), which a checkpoint only
    /// names. A custom one of the configuration in [`with_limits_of`](Self::with_limits_of) counts if there is none here.
    pub fn with_noiser(mut self, noiser: impl Into<NoiserConfig>) -> Self {
        self.noiser = Some(noiser.into());
        self
    }

    /// Saves strategy and model under the strategy's generation and drops the oldest of the other checkpoints. A checkpoint of that
    /// generation that is there already is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`SavedError::Checkpoint`] with the file; earlier checkpoints are unharmed then.
    pub fn save<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<PathBuf, Error> {
        self.save_parts(strategy, |draft| write_parts(draft, strategy, model))
    }

    /// Saves as [`save`](Self::save) does, with what the members keep from generation to generation, as a module
    /// ([`SavedState`](eggroll_nn::integer::SavedState) for one).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use eggroll_core::QEggrollConfig;
    /// use eggroll_nn::integer::{EggModelConfig, EggState, SavedState};
    /// use eggroll_run::Checkpoints;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let folder = tempfile::tempdir()?;
    /// let model = EggModelConfig::new().with_layers(1).with_width(8).init(&Device::flex());
    /// let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population(4).try_init(&model)?;
    /// let state = SavedState::from(model.initial_state(4));
    ///
    /// let checkpoints = Checkpoints::new(folder.path());
    /// checkpoints.save_carrying(&strategy, &model, &state)?;
    /// let loaded = checkpoints.load_latest_carrying(model, state)?;
    /// let (_strategy, _model, state) = loaded.expect("saved above");
    /// assert_eq!(EggState::from(state).layers[0].dims(), [4, 8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    pub fn save_carrying<M: Module, C: Module>(
        &self,
        strategy: &EvolutionStrategy,
        model: &M,
        carried: &C,
    ) -> Result<PathBuf, Error> {
        self.save_parts(strategy, |draft| {
            draft.module(CARRIED, carried)?;
            write_parts(draft, strategy, model)
        })
    }

    fn save_parts(
        &self,
        strategy: &EvolutionStrategy,
        write: impl FnOnce(&mut Draft) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let name = format!("{PREFIX}{:012}", strategy.generation());
        let target = self.folder.join(&name);
        let [draft, replaced] = [Hidden::Draft, Hidden::Replaced].map(|hidden| hidden.path(&self.folder, &name));
        durable::create_folder(&self.folder)?;
        remove_if_there(&draft)?;
        // What counts is why it failed, on a full disk for one.
        write_draft(&draft, strategy, write).inspect_err(|_| drop(remove_if_there(&draft)))?;
        if target.exists() {
            remove_if_there(&replaced)?;
            fs::rename(&target, &replaced).map_err(Error::io(&target))?;
        }
        fs::rename(&draft, &target).map_err(Error::io(&target))?;
        durable::sync(&self.folder)?;
        self.sweep()?;
        self.prune(&name)?;
        Ok(target)
    }

    /// Folders of the checkpoints, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder cannot be read; a folder that is not there has no checkpoints.
    pub fn list(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.complete()?.into_values().collect())
    }

    /// Complete checkpoints by name, the oldest first.
    fn complete(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        let mut complete = BTreeMap::new();
        for name in self.names()? {
            if is_checkpoint(&name) {
                complete.insert(name.clone(), self.folder.join(name));
            } else if let Some((hidden @ Hidden::Replaced, name)) = Hidden::parse(&name) {
                complete.entry(name.to_owned()).or_insert_with(|| hidden.path(&self.folder, name));
            }
        }
        Ok(complete)
    }

    /// Names of everything in the folder.
    fn names(&self) -> Result<Vec<String>, Error> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.folder).map_err(Error::io(&self.folder))?;
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.map(|entry| entry.map(name)).collect::<io::Result<_>>().map_err(Error::io(&self.folder))
    }

    /// Loads the latest checkpoint into `model`, whose values do not matter; `None` if there is no checkpoint.
    ///
    /// # Errors
    ///
    /// As [`load`].
    pub fn load_latest<M: Module>(&self, model: M) -> Result<Option<(EvolutionStrategy, M)>, Error> {
        match self.list()?.last() {
            None => Ok(None),
            Some(path) => self.load_saved(&Saved::open(path)?, model).map(Some),
        }
    }

    /// Loads the latest checkpoint of [`save_carrying`](Self::save_carrying) into `model` and `carried`, whose values do not
    /// matter; `None` if there is no checkpoint.
    ///
    /// # Errors
    ///
    /// As [`load`]; also if the checkpoint has nothing that members keep.
    pub fn load_latest_carrying<M: Module, C: Module>(
        &self,
        model: M,
        carried: C,
    ) -> Result<Option<(EvolutionStrategy, M, C)>, Error> {
        let Some(path) = self.list()?.pop() else {
            return Ok(None);
        };
        let saved = Saved::open(&path)?;
        let (strategy, model) = self.load_saved(&saved, model)?;
        Ok(Some((strategy, model, saved.module(CARRIED, carried)?)))
    }

    fn load_saved<M: Module>(&self, saved: &Saved, model: M) -> Result<(EvolutionStrategy, M), Error> {
        load_saved(saved, self.limits.as_ref(), self.noiser.as_ref(), model)
    }

    /// Removes what saves that were killed have left behind.
    fn sweep(&self) -> Result<(), Error> {
        for name in self.names()? {
            match Hidden::parse(&name) {
                // The only one of its generation.
                Some((Hidden::Replaced, replaced)) if !self.folder.join(replaced).exists() => {}
                Some(_) => remove_if_there(&self.folder.join(name))?,
                None => {}
            }
        }
        Ok(())
    }

    /// Drops the oldest checkpoints but the one that has just been saved: later ones may be of another run.
    fn prune(&self, saved: &str) -> Result<(), Error> {
        let complete = self.complete()?;
        let excess = complete.len().saturating_sub(self.keep);
        let others = complete.iter().filter(|(name, _)| *name != saved);
        others.take(excess).try_for_each(|(name, path)| self.remove(name, path))
    }

    /// Drops a checkpoint, in one step for whoever looks.
    fn remove(&self, name: &str, path: &Path) -> Result<(), Error> {
        let removed = Hidden::Removed.path(&self.folder, name);
        fs::rename(path, &removed).map_err(Error::io(path))?;
        remove_if_there(&removed)
    }

    /// Drops the checkpoints of these generations that are there.
    #[cfg(feature = "learner")]
    pub(crate) fn remove_of(&self, generations: impl Fn(u64) -> bool) -> Result<(), Error> {
        let is_one = |name: &str| generation_of(name).is_some_and(&generations);
        let complete = self.complete()?;
        complete.iter().filter(|(name, _)| is_one(name)).try_for_each(|(name, path)| self.remove(name, path))
    }
}

/// Loads one checkpoint folder into `model`, whose values do not matter.
///
/// # Errors
///
/// Each with the file and the values:
///
/// | error | of |
/// |---|---|
/// | [`Error::Io`] | a file that is missing or cannot be read |
/// | [`SavedError::Checksum`], [`SavedError::FileLength`] | a file that is not what was written |
/// | [`SavedError::Format`] | another version of the format, also the first one, which had no checksums |
/// | [`SavedError::NoiseStream`] | noise that this version draws differently |
/// | [`eggroll_train::Error::Noiser`] | a noiser that the file only names: [`Checkpoints::with_noiser`] gives it |
/// | [`SavedError::OtherModel`] | a model of other parameters, or with the same in another order |
/// | [`SavedError::Checkpoint`] | what cannot be parsed all the same |
pub fn load<M: Module>(path: &Path, model: M) -> Result<(EvolutionStrategy, M), Error> {
    load_under(path, None, model)
}

/// As [`load`], with the chunk and the memory limit of `limits`, if given.
pub(crate) fn load_under<M: Module>(
    path: &Path,
    limits: Option<&EvolutionStrategyConfig>,
    model: M,
) -> Result<(EvolutionStrategy, M), Error> {
    load_saved(&Saved::open(path)?, limits, None, model)
}

fn load_saved<M: Module>(
    saved: &Saved,
    limits: Option<&EvolutionStrategyConfig>,
    noiser: Option<&NoiserConfig>,
    model: M,
) -> Result<(EvolutionStrategy, M), Error> {
    let state = &saved.state;
    let mut config = match limits {
        Some(limits) => state.config.with_limits_of(limits),
        None => state.config.clone(),
    };
    let custom = |noiser: &NoiserConfig| matches!(noiser, NoiserConfig::Custom(_));
    let of_limits = limits.map(|limits| &limits.noiser).filter(|given| custom(given) || custom(&config.noiser));
    config.noiser = state.config.noiser.restored(noiser.or(of_limits))?;
    let (found, known) = (state.noise_stream, state.config.noiser.stream_version());
    if found != known {
        return Err(SavedError::NoiseStream { path: saved.path(), found, known }.into());
    }
    let model = saved.module(MODEL, model)?;
    let record = StrategyRecord {
        generation: state.generation,
        optimizer: saved.read(OPTIMIZER, OptimizerRecord::from_bytes)?,
        schedule: saved.read(SCHEDULE, LrSchedulerRecord::from_bytes)?,
    };
    let strategy = config.try_init(&model)?.load_record(record);
    Ok((strategy, model))
}

/// Writes all files of a checkpoint to a folder.
fn write_draft(
    folder: &Path,
    strategy: &EvolutionStrategy,
    write: impl FnOnce(&mut Draft) -> Result<(), Error>,
) -> Result<(), Error> {
    fs::create_dir(folder).map_err(Error::io(folder))?;
    let mut parts = Draft::new(folder);
    write(&mut parts)?;
    parts.finish(State::of(strategy))
}

fn write_parts<M: Module>(draft: &mut Draft, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
    draft.module(MODEL, model)?;
    let record = strategy.to_record();
    draft.write(OPTIMIZER, record.optimizer.into_bytes())?;
    draft.write(SCHEDULE, record.schedule.into_bytes())
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    if path.exists() { fs::remove_dir_all(path).map_err(Error::io(path)) } else { Ok(()) }
}
