//! What episodes came to.

use super::Moments;
use crate::fitness::Fitness;

/// What a generation's rollouts came to.
#[derive(Clone, Debug)]
pub struct RolloutOutcome {
    /// Mean return of every member.
    pub fitness: Fitness,
    /// All its episodes, member by member.
    pub episodes: EpisodeStatistics,
}

/// Returns, lengths and ends of episodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpisodeStatistics {
    returns: Vec<f32>,
    lengths: Vec<u32>,
    terminated: Vec<bool>,
    moments: Vec<Moments>,
}

impl EpisodeStatistics {
    pub(super) fn push(&mut self, total: f64, length: u32, terminated: bool, moments: Option<Moments>) {
        self.returns.push(total as f32);
        self.lengths.push(length);
        self.terminated.push(terminated);
        self.moments.extend(moments);
    }

    pub(super) fn append(&mut self, mut others: Self) {
        self.returns.append(&mut others.returns);
        self.lengths.append(&mut others.lengths);
        self.terminated.append(&mut others.terminated);
        self.moments.append(&mut others.moments);
    }

    /// Sum of rewards of each episode.
    pub fn returns(&self) -> &[f32] {
        &self.returns
    }

    /// Steps of each episode.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Whether each episode ended by itself, not by a limit of time.
    pub fn terminated(&self) -> &[bool] {
        &self.terminated
    }

    /// Moments of the observations of each episode, in order; empty if they are not normalised.
    pub(super) fn moments(&self) -> &[Moments] {
        &self.moments
    }

    /// Mean of the returns.
    pub fn mean_return(&self) -> f64 {
        mean(&self.returns)
    }

    /// Steps of all episodes together.
    pub fn env_steps(&self) -> u64 {
        self.lengths.iter().map(|length| u64::from(*length)).sum()
    }
}

/// Mean of some returns.
pub(super) fn mean(returns: &[f32]) -> f64 {
    returns.iter().map(|value| f64::from(*value)).sum::<f64>() / returns.len().max(1) as f64
}
