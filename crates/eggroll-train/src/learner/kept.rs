//! Checkpoints that one of burn-train's strategies chooses, beside those to continue from.

use super::config::EsTrainingConfig;
use crate::checkpoint::Checkpoints;
use crate::error::Error;
use burn::train::checkpoint::{CheckpointingAction, CheckpointingStrategy};
use burn::train::metric::store::EventStoreClient;
use std::fs;
use std::path::{Path, PathBuf};

/// A strategy and the folder that it rules.
pub(super) struct Kept {
    checkpoints: Checkpoints,
    strategy: Box<dyn CheckpointingStrategy>,
}

impl Kept {
    pub fn new(folder: &Path, strategy: Box<dyn CheckpointingStrategy>) -> Self {
        // The strategy deletes, nobody else.
        Self { checkpoints: Checkpoints::new(folder.join("kept")).with_keep(usize::MAX), strategy }
    }

    /// Lets the strategy see the epochs of an earlier process, whose files are there.
    pub fn replay(&mut self, epochs: u64, store: &EventStoreClient) {
        (1..=epochs as usize).for_each(|epoch| drop(self.strategy.checkpointing(epoch, store)));
    }

    /// Does what the strategy says at the end of an epoch.
    pub fn end_epoch(
        &mut self,
        epoch: u64,
        config: &EsTrainingConfig,
        store: &EventStoreClient,
        save: impl Fn(&Checkpoints) -> Result<PathBuf, Error>,
    ) -> Result<(), Error> {
        for action in self.strategy.checkpointing(epoch as usize, store) {
            match action {
                CheckpointingAction::Save => drop(save(&self.checkpoints)?),
                CheckpointingAction::Delete(epoch) => {
                    let epoch = epoch as u64;
                    self.delete(config.start(epoch) + config.length(epoch))?;
                }
            }
        }
        Ok(())
    }

    /// Deletes the checkpoint of a generation, if it is there.
    fn delete(&self, generation: u64) -> Result<(), Error> {
        let found = self.checkpoints.list()?.into_iter().find(|path| number(path) == Some(generation));
        found.map_or(Ok(()), |path| fs::remove_dir_all(&path).map_err(Error::io(path)))
    }
}

/// The generation in a checkpoint's name.
fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.rsplit('-').next()?.parse().ok()
}
