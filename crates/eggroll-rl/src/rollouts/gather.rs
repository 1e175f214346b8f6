//! Rollouts of a slice, with the episodes of all replicas.

use super::evaluate::{EpisodeRows, Rollouts};
use super::policy::Policy;
use super::runner::Runner;
use super::statistics::RolloutResult;
use eggroll_train::{Communicator, DistributionError, Population};

impl<E, C: Runner<E>> Rollouts<E, C> {
    /// [`evaluate`](Self::evaluate) of a slice of the population, in one of several replicas. The fitness is of the slice and the episodes are
    /// of all ranks, so that all ranks [update](Self::update_normalizer) their normalizer alike. All ranks call it, each with its own slice.
    ///
    /// The sums of a normalizer travel too: for every episode two numbers, and two for each observed value.
    ///
    /// # Errors
    ///
    /// As [`Communicator::all_gather_words`]; [`DistributionError::Length`] if the slices of all ranks leave a gap.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_gathering<P: Policy, T: Communicator + ?Sized>(
        &self,
        population: &Population,
        policy: &P,
        communicator: &mut T,
    ) -> Result<RolloutResult, DistributionError> {
        let own = self.rows(population, policy);
        let values = gather(population, &own.values, communicator)?;
        let fitness = self.outcome(&own).fitness;
        Ok(RolloutResult { episodes: self.statistics(&EpisodeRows { values, ..own }), fitness })
    }
}

/// The rows of all members; this rank has the rows of `slice`. Members that several ranks have run have the same rows.
fn gather<C: Communicator + ?Sized>(
    slice: &Population,
    rows: &[f32],
    communicator: &mut C,
) -> Result<Vec<f32>, DistributionError> {
    let (first, each) = (slice.range().start, rows.len() / slice.count()); // floats of a member's rows
    let message: Vec<u32> = std::iter::once(first as u32).chain(rows.iter().map(|value| value.to_bits())).collect();
    let mut parts: Vec<(usize, usize, Vec<u32>)> = Vec::new(); // first member, rank, rows
    for (rank, mut words) in communicator.all_gather_words(&message)?.into_iter().enumerate() {
        let first = words.first().copied().unwrap_or_default() as usize;
        words.drain(..words.len().min(1));
        parts.push((first, rank, words));
    }
    parts.sort_unstable();
    let mut all: Vec<f32> = Vec::new();
    for (first, rank, words) in parts {
        let (found, expected) = (words.len(), words.len().next_multiple_of(each));
        if found != expected || first * each > all.len() {
            return Err(DistributionError::Length { rank, found, expected: (first * each).max(expected) });
        }
        let known = all.len() - first * each;
        all.extend(words.into_iter().skip(known).map(f32::from_bits));
    }
    Ok(all)
}
