//! Checkpoints chosen by one of burn-train's strategies, in addition to the checkpoints to continue from.

use super::config::EsTrainingConfig;
use crate::checkpoint::Checkpoints;
use crate::error::Error;
use burn::train::checkpoint::{CheckpointingAction, CheckpointingStrategy};
use burn::train::metric::store::EventStoreClient;
use std::path::{Path, PathBuf};

/// A strategy and its folder.
pub(super) struct Kept {
    checkpoints: Checkpoints,
    strategy: Box<dyn CheckpointingStrategy>,
}

impl Kept {
    pub fn new(folder: &Path, strategy: Box<dyn CheckpointingStrategy>) -> Result<Self, Error> {
        let folder = folder.join("kept");
        // Only the strategy deletes.
        let checkpoints = Checkpoints::new(&folder).with_keep(usize::MAX);
        let checkpoints = if folder.exists() { checkpoints.locked()? } else { checkpoints };
        Ok(Self { checkpoints, strategy })
    }

    /// Shows the strategy the epochs of an earlier process, whose files exist.
    pub fn replay(&mut self, epochs: u64, store: &EventStoreClient) {
        (1..=epochs as usize).for_each(|epoch| drop(self.strategy.checkpointing(epoch, store)));
    }

    /// Executes the strategy's decisions at the end of an epoch.
    pub fn end_epoch(
        &mut self,
        epoch: u64,
        config: &EsTrainingConfig,
        store: &EventStoreClient,
        save: impl Fn(&Checkpoints) -> Result<PathBuf, Error>,
    ) -> Result<(), Error> {
        let mut actions = self.strategy.checkpointing(epoch as usize, store);
        // A replacement is saved before the old checkpoint is deleted.
        actions.sort_by_key(|action| matches!(action, CheckpointingAction::Delete(_)));
        actions.into_iter().try_for_each(|action| match action {
            CheckpointingAction::Save => save(&self.checkpoints).map(drop),
            CheckpointingAction::Delete(dropped) if dropped as u64 == epoch => Ok(()),
            // Also if the epoch ended when the run was planned shorter.
            CheckpointingAction::Delete(dropped) => self.checkpoints.remove_of(|generation| {
                generation.checked_sub(1).is_some_and(|last| config.epoch(last) == dropped as u64)
            }),
        })
    }
}
