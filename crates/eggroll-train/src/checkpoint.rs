//! Checkpoints: everything needed to continue, bit for bit.
//!
//! A checkpoint is a folder `generation-N` with `model.bpk` (a Burn record that plain Burn loads), `optimizer.bpk`,
//! `schedule.bpk` and `strategy.json`, and `carried.bpk` if members keep a state. It is written under another name, flushed and renamed, so that a folder of that
//! name is complete or absent.

use crate::config::EvolutionStrategyConfig;
use crate::error::Error;
use crate::strategy::EvolutionStrategy;
use burn::lr_scheduler::LrSchedulerRecord;
use burn::module::Module;
use burn::optim::OptimizerRecord;
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
const PREFIX: &str = "generation-";
const MODEL: &str = "model.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const SCHEDULE: &str = "schedule.bpk";
const CARRIED: &str = "carried.bpk";
const STRATEGY: &str = "strategy.json";

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
struct State {
    format: u32,
    /// Version of the stream that the noiser's distribution comes from.
    noise_stream: u32,
    generation: u64,
    config: EvolutionStrategyConfig,
}

/// A folder of checkpoints, the latest few kept.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::Device;
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::{Checkpoints, EvolutionStrategyConfig};
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
}

impl Checkpoints {
    /// Checkpoints in `folder`, the latest two kept. The folder is made when needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), keep: 2 }
    }

    /// Sets how many checkpoints are kept, at least one.
    pub fn with_keep(mut self, keep: usize) -> Self {
        self.keep = keep.max(1);
        self
    }

    /// Saves strategy and model under the strategy's generation and drops the oldest checkpoints. A checkpoint of that
    /// generation that is there already is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Checkpoint`] with the file; earlier checkpoints are unharmed then.
    pub fn save<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<PathBuf, Error> {
        self.save_parts(strategy, |folder| write_parts(folder, strategy, model))
    }

    /// Saves as [`save`](Self::save) does, with what the members keep from generation to generation, as a module
    /// ([`SavedState`](crate::SavedState) for one).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use eggroll_core::QEggrollConfig;
    /// use eggroll_nn::integer::{EggModelConfig, EggState};
    /// use eggroll_train::{Checkpoints, EvolutionStrategyConfig, SavedState};
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
        self.save_parts(strategy, |folder| {
            write(folder, CARRIED, carried.clone().into_record().into_bytes())?;
            write_parts(folder, strategy, model)
        })
    }

    fn save_parts(
        &self,
        strategy: &EvolutionStrategy,
        write: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let name = format!("{PREFIX}{:012}", strategy.generation());
        let target = self.folder.join(&name);
        let draft = self.folder.join(format!(".{name}.draft"));
        remove_if_there(&draft)?;
        fs::create_dir_all(&draft).map_err(Error::io(&draft))?;
        write(&draft)?;
        remove_if_there(&target)?;
        fs::rename(&draft, &target).map_err(Error::io(&target))?;
        sync(&self.folder)?;
        self.prune()?;
        Ok(target)
    }

    /// Folders of the checkpoints, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder cannot be read; a folder that is not there has no checkpoints.
    pub fn list(&self) -> Result<Vec<PathBuf>, Error> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(Error::io(&self.folder))? {
            let entry = entry.map_err(Error::io(&self.folder))?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// Loads the latest checkpoint into `model`, whose values do not matter; `None` if there is no checkpoint.
    ///
    /// # Errors
    ///
    /// As [`load`].
    pub fn load_latest<M: Module>(&self, model: M) -> Result<Option<(EvolutionStrategy, M)>, Error> {
        match self.list()?.last() {
            None => Ok(None),
            Some(path) => load(path, model).map(Some),
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
        let (strategy, model) = load(&path, model)?;
        let carried = read(&path, CARRIED, |bytes| carried.try_load_record(ModuleRecord::from_bytes(bytes)?))?;
        Ok(Some((strategy, model, carried)))
    }

    fn prune(&self) -> Result<(), Error> {
        let found = self.list()?;
        let excess = found.len().saturating_sub(self.keep);
        found[..excess].iter().try_for_each(|path| remove_if_there(path))
    }
}

/// Loads one checkpoint folder into `model`, whose values do not matter.
///
/// # Errors
///
/// [`Error::Io`] or [`Error::Checkpoint`] with the file and the reason: missing or damaged parts, another format or noise
/// stream, a model of other parameters.
pub fn load<M: Module>(path: &Path, model: M) -> Result<(EvolutionStrategy, M), Error> {
    let file = path.join(STRATEGY);
    let text = fs::read_to_string(&file).map_err(Error::io(&file))?;
    let refuse = |reason: String| Error::Checkpoint { path: file.clone(), reason };
    let state: State = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    let (found, known) = ((state.format, state.noise_stream), (FORMAT, noise_stream(&state.config)));
    if found != known {
        return Err(refuse(format!("format and noise stream are {found:?}, this version reads {known:?}")));
    }
    let model = read(path, MODEL, |bytes| model.try_load_record(ModuleRecord::from_bytes(bytes)?))?;
    let mut strategy = state.config.try_init(&model)?;
    let optimizer = read(path, OPTIMIZER, OptimizerRecord::from_bytes)?;
    let schedule = read(path, SCHEDULE, LrSchedulerRecord::from_bytes)?;
    strategy.optimizer = strategy.optimizer.load_record(optimizer);
    strategy.scheduler = strategy.scheduler.load_record(schedule);
    strategy.generation = state.generation;
    Ok((strategy, model))
}

fn noise_stream(config: &EvolutionStrategyConfig) -> u32 {
    config.noiser.distribution().stream_version()
}

fn write_parts<M: Module>(folder: &Path, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
    let state = State {
        format: FORMAT,
        noise_stream: noise_stream(strategy.config()),
        generation: strategy.generation(),
        config: strategy.config().clone(),
    };
    let json = serde_json::to_vec_pretty(&state)
        .map_err(|error| Error::Checkpoint { path: folder.join(STRATEGY), reason: error.to_string() })?;
    write(folder, MODEL, model.clone().into_record().into_bytes())?;
    write(folder, OPTIMIZER, strategy.optimizer.to_record().into_bytes())?;
    write(folder, SCHEDULE, strategy.scheduler.to_record().into_bytes())?;
    write(folder, STRATEGY, Ok(json))?;
    sync(folder)
}

fn write<T: std::ops::Deref<Target = [u8]>>(
    folder: &Path,
    name: &str,
    bytes: Result<T, RecordError>,
) -> Result<(), Error> {
    let path = folder.join(name);
    let bytes = bytes.map_err(Error::record(&path))?;
    let mut file = File::create(&path).map_err(Error::io(&path))?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(Error::io(&path))
}

fn read<T>(folder: &Path, name: &str, parse: impl FnOnce(Bytes) -> Result<T, RecordError>) -> Result<T, Error> {
    let path = folder.join(name);
    let bytes = fs::read(&path).map_err(Error::io(&path))?;
    parse(Bytes::from_bytes_vec(bytes)).map_err(Error::record(&path))
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    if path.exists() { fs::remove_dir_all(path).map_err(Error::io(path)) } else { Ok(()) }
}

/// Flushes a folder's entries to disk, where the system can.
fn sync(folder: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))?;
    }
    Ok(())
}
