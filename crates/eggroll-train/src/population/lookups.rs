//! Rows of embeddings that members have looked up, on all ranks: estimates that leave out others are to be the same.

use super::Population;
use crate::communicator::{Communicator, DistributionError};
use crate::config::InputProjection;
use eggroll_core::scope::Use;
use eggroll_core::sync::locked;

impl Population {
    /// Whether estimates depend on which rows of embeddings members have looked up.
    pub(super) fn notes_lookups(&self) -> bool {
        self.input_projection != InputProjection::Off
    }

    /// Adds the rows that members of other ranks have looked up, if estimates depend on them.
    pub(crate) fn share_lookups<C: Communicator + ?Sized>(
        &self,
        communicator: &mut C,
    ) -> Result<(), DistributionError> {
        if !self.notes_lookups() || communicator.size() == 1 {
            return Ok(());
        }
        let mut uses = locked(&self.uses);
        let own: Vec<bool> = rows(&mut uses).flatten().map(|row| *row).collect();
        let words: Vec<u32> = own.chunks(32).map(word).collect();
        for (rank, other) in communicator.all_gather_words(&words)?.into_iter().enumerate() {
            let (found, expected) = (other.len(), words.len());
            if found != expected {
                return Err(DistributionError::Length { rank, found, expected });
            }
            let bits = other.iter().flat_map(|word| (0..32).map(move |bit| word >> bit & 1 == 1));
            rows(&mut uses).flatten().zip(bits).for_each(|(row, bit)| *row |= bit);
        }
        Ok(())
    }
}

/// The rows of each parameter that is looked up.
fn rows(uses: &mut Option<Vec<Use>>) -> impl Iterator<Item = &mut Vec<bool>> {
    uses.iter_mut().flatten().filter_map(|used| match used {
        Use::Rows(rows) => Some(rows),
        _ => None,
    })
}

/// Up to 32 rows, the first in the lowest bit.
fn word(rows: &[bool]) -> u32 {
    rows.iter().enumerate().map(|(bit, row)| u32::from(*row) << bit).sum()
}
