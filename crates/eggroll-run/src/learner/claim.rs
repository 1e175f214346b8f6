//! The folder of a run, locked and checked to belong to this run.

use super::config::{EsTrainingConfig, FILE};
use crate::checkpoint::Checkpoints;
use crate::durable;
use crate::error::{Error, RunError, SavedError};
use crate::folder::RunFolder;
use crate::replay::{ReplayLog, replay_range};
use burn::module::Module;
use eggroll_train::EvolutionStrategy;

/// The file of a run's fitness.
pub(super) const REPLAY_LOG: &str = "run.replay";

/// A folder that this process has the lock of.
pub(super) struct Claim<'a> {
    folder: &'a RunFolder,
    config: &'a EsTrainingConfig,
    pub checkpoints: Checkpoints,
    /// Whether the run has a checkpoint, or a generation if it continues from its replay log.
    pub has_begun: bool,
    /// Settings that have changed since the run was last here.
    pub changes: Vec<String>,
}

impl<'a> Claim<'a> {
    /// Locks the folder, and refuses one that does not belong to this run. A run that cannot be continued may have had any
    /// configuration. Writes nothing.
    pub fn new(folder: &'a RunFolder, config: &'a EsTrainingConfig, continues_from_log: bool) -> Result<Self, Error> {
        folder.check_content()?;
        folder.lock()?;
        let checkpoints = checkpoints(folder, config);
        let log = folder.file(REPLAY_LOG);
        let is_logged = continues_from_log && log.exists() && !replay_range(&log)?.is_empty();
        let has_begun = is_logged || !checkpoints.list()?.is_empty();
        let path = folder.file(FILE);
        let mut changes = Vec::new();
        if has_begun && path.exists() {
            let saved = EsTrainingConfig::read(&path)?;
            if let Some((field, found, expected)) = config.difference(&saved) {
                return Err(RunError::OtherRun { path, field, found, expected }.into());
            }
            changes = config.changes(&saved);
        }
        Ok(Self { folder, config, checkpoints, has_begun, changes })
    }

    /// Saves the configuration, once it is known to be valid, and locks the checkpoints.
    pub fn save(self) -> Result<Self, Error> {
        durable::replace_if_changed(&self.folder.file(FILE), self.config.to_string().as_bytes())?;
        Ok(Self { checkpoints: self.checkpoints.locked()?, ..self })
    }

    /// The replay log, if the run keeps one. A log of another configuration, from a run that never reached a checkpoint, is moved
    /// aside.
    pub fn replay_log<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<Option<ReplayLog>, Error> {
        if !self.config.replay_log {
            return Ok(None);
        }
        let path = self.folder.file(REPLAY_LOG);
        let log = match ReplayLog::open(&path, strategy, model) {
            Err(Error::Saved(SavedError::ReplayConfig { .. })) if !self.has_begun => {
                durable::move_aside(&path)?;
                ReplayLog::open(&path, strategy, model)
            }
            opened => opened,
        };
        log.map(Some)
    }
}

/// The checkpoints of a run; they refuse checkpoints of other runs.
pub(super) fn checkpoints(folder: &RunFolder, config: &EsTrainingConfig) -> Checkpoints {
    let checkpoints = Checkpoints::new(folder.file("checkpoints")).with_keep(config.keep_checkpoints);
    let checkpoints = checkpoints.with_config(&config.strategy);
    match &config.data {
        Some(data) => checkpoints.with_data(data),
        None => checkpoints,
    }
}
