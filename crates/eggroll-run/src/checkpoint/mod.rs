//! Checkpoints: everything needed to continue, bit for bit.
//!
//! A checkpoint is a folder `generation-N`:
//!
//! | file | contents |
//! |---|---|
//! | `model.bpk` | the model: a Burn record that plain Burn loads |
//! | `optimizer.bpk`, `schedule.bpk` | records of burn-optim |
//! | `masters.bpk` | f32 master weights, if there are any |
//! | `transforms.bpk` | the state of transforms of the gradient, if they have any |
//! | `carried.bpk` | the state of members, if they have one |
//! | `strategy.json` | format, generation, configuration, version of the noise stream, spreads of relative noise, digest of the anchor, row checks. For every part its length and the names, shapes and kinds of its tensors |
//! | `SHA256SUMS` | checksums of all of them; `sha256sum -c SHA256SUMS` checks them too |
//!
//! It is written under another name, flushed and renamed: a folder of that name is complete or absent. A replaced checkpoint is renamed
//! first and counts until its successor exists; a dropped one is renamed before it is removed. A writer of the folder holds its lock.

mod finite;
mod names;
mod newest;
mod parameters;
mod parts;
mod state;

pub(crate) use finite::check_finite;
pub(crate) use names::generation_of;
pub use newest::load;
pub(crate) use newest::load_under;

use crate::durable;
use crate::error::Error;
use crate::lock::Lock;
use burn::module::Module;
use eggroll_core::NoiserConfig;
use eggroll_core::sync::locked;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig};
use names::{Hidden, PREFIX};
use parts::Draft;
use state::CheckpointState;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

const MODEL: &str = "model.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const SCHEDULE: &str = "schedule.bpk";
const MASTERS: &str = "masters.bpk";
const TRANSFORMS: &str = "transforms.bpk";
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
    /// Source of the chunks and memory limit, if not the saved ones.
    limits: Option<EvolutionStrategyConfig>,
    /// The noiser, for a checkpoint that has only its name.
    noiser: Option<NoiserConfig>,
    /// Configuration whose updates the checkpoints must have.
    run: Option<EvolutionStrategyConfig>,
    /// Digest of the training data.
    data: Option<String>,
    /// Whether to use the newest checkpoint that loads if later ones are damaged.
    fallback: bool,
    /// The lock of a run, which holds it from beginning to end.
    lock: Option<Arc<Lock>>,
    /// The lock of any clone.
    shared: Arc<Mutex<Weak<Lock>>>,
}

impl Checkpoints {
    /// Checkpoints in `folder`; keeps the latest two. The folder is created when needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder: PathBuf = folder.into();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let (limits, noiser, run, data, lock) = (None, None, None, None, None);
        Self { folder, keep: 2, limits, noiser, run, data, fallback: true, lock, shared: Arc::default() }
    }

    /// Sets how many checkpoints are kept, at least one.
    pub fn with_keep(mut self, keep: usize) -> Self {
        self.keep = keep.max(1);
        self
    }

    /// Loads strategies with the chunk size and memory limit of `config` in place of the saved ones. So a run may continue with less memory,
    /// or more. They change no update.
    pub fn with_limits_of(mut self, config: &EvolutionStrategyConfig) -> Self {
        self.limits = Some(config.clone());
        self
    }

    /// Loads only strategies of this noiser, and uses it: for a [`CustomNoiser`](eggroll_core::CustomNoiser), which a checkpoint only
    /// names. If not set, a custom noiser of the configuration in [`with_limits_of`](Self::with_limits_of) counts.
    pub fn with_noiser(mut self, noiser: impl Into<NoiserConfig>) -> Self {
        self.noiser = Some(noiser.into());
        self
    }

    /// Loads only checkpoints of a run that makes the updates of `config`, with the chunk size and memory limit of `config`. Another run,
    /// for example with another seed, is refused as [`RunError::OtherRun`](crate::RunError::OtherRun).
    pub fn with_config(self, config: &EvolutionStrategyConfig) -> Self {
        Self { run: Some(config.clone()), ..self.with_limits_of(config) }
    }

    /// Saves the digest of the training data ([`data_digest`](crate::data_digest)), and refuses checkpoints of other data as
    /// [`RunError::OtherRun`](crate::RunError::OtherRun). Checkpoints that were saved without one are loaded.
    pub fn with_data(mut self, digest: impl Into<String>) -> Self {
        self.data = Some(digest.into());
        self
    }

    /// Sets whether a damaged latest checkpoint is skipped, with a warning on standard error, for the newest one that loads: the default.
    /// Otherwise it is an error.
    pub fn with_fallback(mut self, fallback: bool) -> Self {
        self.fallback = fallback;
        self
    }

    /// These checkpoints with a lock of their folder, held until all clones are dropped; removes files left by killed saves. Loops of this crate
    /// do so themselves.
    ///
    /// # Errors
    ///
    /// [`RunError::InUse`](crate::RunError::InUse) if another process writes into the folder; [`Error::Io`].
    pub fn locked(mut self) -> Result<Self, Error> {
        if self.lock.is_none() {
            let mut shared = locked(&self.shared);
            let lock = match shared.upgrade() {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(Lock::folder(&self.folder)?);
                    *shared = Arc::downgrade(&lock);
                    self.sweep()?;
                    lock
                }
            };
            drop(shared);
            self.lock = Some(lock);
        }
        Ok(self)
    }

    /// Saves strategy and model under the strategy's generation, and drops the oldest of the other checkpoints. Replaces an
    /// existing checkpoint of that generation.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`SavedError::Checkpoint`](crate::SavedError::Checkpoint) with the file;
    /// [`RunError::NonFiniteParameters`](crate::RunError::NonFiniteParameters) if a trained parameter is NaN or infinite;
    /// [`RunError::InUse`](crate::RunError::InUse) if another process writes into the folder. Earlier checkpoints are unharmed then.
    pub fn save<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<PathBuf, Error> {
        check_finite(strategy, model)?;
        self.save_parts(strategy, |draft| write_parts(draft, strategy, model))
    }

    /// Saves as [`save`](Self::save) does, with the state of the members, as a module
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
    /// let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(4).try_init(&model)?;
    /// let state = SavedState::from(model.initial_state(4));
    ///
    /// let checkpoints = Checkpoints::new(folder.path());
    /// checkpoints.save_with_state(&strategy, &model, &state)?;
    /// let loaded = checkpoints.load_latest_with_state(model, state)?;
    /// let (_strategy, _model, state) = loaded.expect("saved above");
    /// assert_eq!(EggState::from(state).layers[0].dims(), [4, 8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    pub fn save_with_state<M: Module, C: Module>(
        &self,
        strategy: &EvolutionStrategy,
        model: &M,
        carried: &C,
    ) -> Result<PathBuf, Error> {
        check_finite(strategy, model)?;
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
        let _locked = self.clone().locked()?;
        let name = format!("{PREFIX}{:012}", strategy.generation());
        let target = self.folder.join(&name);
        let draft = durable::draft_folder(&self.folder, &name).map_err(Error::io(&self.folder))?;
        let written = write_draft(&draft, CheckpointState::of(strategy, self.data.clone()), write);
        // The first failure counts, for example a full disk.
        written.and_then(|()| self.put(&draft, &name)).inspect_err(|_| drop(remove_if_there(&draft)))?;
        self.sweep()?;
        self.prune(&name)?;
        Ok(target)
    }

    /// Gives a draft its name.
    fn put(&self, draft: &Path, name: &str) -> Result<(), Error> {
        let (target, replaced) = (self.folder.join(name), Hidden::Replaced.path(&self.folder, name));
        if target.symlink_metadata().is_ok() {
            remove_if_there(&replaced)?;
            fs::rename(&target, &replaced).map_err(Error::io(&target))?;
        }
        fs::rename(draft, &target).map_err(Error::io(&target))?;
        durable::sync(&self.folder)
    }

    /// Folders of the checkpoints, the oldest first. Other files do not count, under any name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder cannot be read; a missing folder has no checkpoints.
    pub fn list(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.complete()?.into_values().collect())
    }

    /// Whether there is a checkpoint of this generation.
    #[cfg(feature = "learner")]
    pub(crate) fn has(&self, generation: u64) -> Result<bool, Error> {
        Ok(self.complete()?.keys().any(|(saved, _)| *saved == generation))
    }

    /// Complete checkpoints by generation and name, the oldest first.
    fn complete(&self) -> Result<BTreeMap<(u64, String), PathBuf>, Error> {
        let mut complete = BTreeMap::new();
        for name in self.names()? {
            if let Some(generation) = generation_of(&name) {
                let path = self.folder.join(&name);
                if path.is_dir() {
                    complete.insert((generation, name), path);
                }
            } else if let Some((hidden @ Hidden::Replaced, name)) = Hidden::parse(&name) {
                let key = (generation_of(name).expect("parsed"), name.to_owned());
                complete.entry(key).or_insert_with(|| hidden.path(&self.folder, name));
            }
        }
        Ok(complete)
    }

    /// Paths with the name of a checkpoint that are not folders.
    fn odd(&self) -> Result<Vec<PathBuf>, Error> {
        let named = self.names()?.into_iter().filter(|name| generation_of(name).is_some());
        Ok(named.map(|name| self.folder.join(name)).filter(|path| !path.is_dir()).collect())
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

    /// Removes files left by killed saves.
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

    /// Drops the oldest checkpoints, except the one just saved: later ones may belong to another run.
    fn prune(&self, saved: &str) -> Result<(), Error> {
        let complete = self.complete()?;
        let excess = complete.len().saturating_sub(self.keep);
        let others = complete.iter().filter(|((_, name), _)| *name != saved);
        others.take(excess).try_for_each(|((_, name), path)| self.remove(name, path))
    }

    /// Drops a checkpoint, in one step for readers.
    fn remove(&self, name: &str, path: &Path) -> Result<(), Error> {
        let removed = Hidden::Removed.path(&self.folder, name);
        fs::rename(path, &removed).map_err(Error::io(path))?;
        remove_if_there(&removed)
    }

    /// Drops the checkpoints of these generations that are there.
    #[cfg(feature = "learner")]
    pub(crate) fn remove_of(&self, generations: impl Fn(u64) -> bool) -> Result<(), Error> {
        let _locked = self.clone().locked()?;
        let complete = self.complete()?;
        let mut dropped = complete.iter().filter(|((generation, _), _)| generations(*generation));
        dropped.try_for_each(|((_, name), path)| self.remove(name, path))
    }
}

/// Writes all files of a checkpoint to a folder.
fn write_draft(
    folder: &Path,
    state: CheckpointState,
    write: impl FnOnce(&mut Draft) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut parts = Draft::new(folder);
    write(&mut parts)?;
    parts.finish(state)
}

fn write_parts<M: Module>(draft: &mut Draft, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
    draft.module(MODEL, model)?;
    let record = strategy.to_record();
    for (name, kept) in [(MASTERS, &record.masters), (TRANSFORMS, &record.transforms)] {
        if let Some(kept) = kept {
            draft.module(name, kept)?;
        }
    }
    draft.write(OPTIMIZER, record.optimizer.into_bytes())?;
    draft.write(SCHEDULE, record.schedule.into_bytes())
}

/// Removes a folder, or whatever else has its name.
fn remove_if_there(path: &Path) -> Result<(), Error> {
    let removed = match path.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(Error::io(path))
}
