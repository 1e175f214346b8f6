//! The folder of a run: ours, of this run and of no other.

use super::config::{EsTrainingConfig, FILE};
use crate::checkpoint::Checkpoints;
use crate::durable;
use crate::error::{Error, RunError};
use crate::folder::RunFolder;

/// A folder that this process has the lock of.
pub(super) struct Claim<'a> {
    folder: &'a RunFolder,
    config: &'a EsTrainingConfig,
    pub checkpoints: Checkpoints,
    /// What is set otherwise than when the run was here last.
    pub changes: Vec<String>,
}

impl<'a> Claim<'a> {
    /// Locks the folder, and refuses one that is no run's, or another run's: one that never came to a checkpoint may have been of any
    /// configuration. Writes nothing.
    pub fn new(folder: &'a RunFolder, config: &'a EsTrainingConfig) -> Result<Self, Error> {
        folder.check_content()?;
        folder.lock()?;
        let checkpoints = checkpoints(folder, config);
        let path = folder.file(FILE);
        let mut changes = Vec::new();
        if path.exists() && !checkpoints.list()?.is_empty() {
            let saved = EsTrainingConfig::read(&path)?;
            if let Some((field, found, expected)) = config.difference(&saved) {
                return Err(RunError::OtherRun { path, field, found, expected }.into());
            }
            changes = config.changes(&saved);
        }
        Ok(Self { folder, config, checkpoints, changes })
    }

    /// Saves the configuration, once it is known to be one that can be run, and locks the checkpoints.
    pub fn save(self) -> Result<Self, Error> {
        durable::replace_if_changed(&self.folder.file(FILE), self.config.to_string().as_bytes())?;
        Ok(Self { checkpoints: self.checkpoints.locked()?, ..self })
    }
}

/// The checkpoints of a run, which load no other's.
pub(super) fn checkpoints(folder: &RunFolder, config: &EsTrainingConfig) -> Checkpoints {
    let checkpoints = Checkpoints::new(folder.file("checkpoints")).with_keep(config.keep_checkpoints);
    let checkpoints = checkpoints.with_config(&config.strategy);
    match &config.data {
        Some(data) => checkpoints.with_data(data),
        None => checkpoints,
    }
}
