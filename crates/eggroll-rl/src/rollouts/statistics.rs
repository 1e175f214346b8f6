//! Statistics of episodes.

use super::moments::Moments;
use eggroll_train::Fitness;

/// Returns and lengths of episodes, member after member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpisodeStatistics {
    returns: Vec<f32>,
    lengths: Vec<u32>,
    pub(super) moments: Moments,
}

impl EpisodeStatistics {
    /// Of rows `[return, length, sums of a normalizer …]`, of policies whose actions last `action_repeat` steps; sums are of distances to
    /// `center`.
    pub(super) fn from_rows(rows: &[f32], width: usize, action_repeat: usize, center: &[f32]) -> Self {
        let mut statistics = Self { moments: Moments::around(center), ..Self::default() };
        for row in rows.chunks_exact(width) {
            let length = row[1] as u32;
            statistics.returns.push(row[0]);
            statistics.lengths.push(length);
            statistics.moments.add(f64::from(length.div_ceil(action_repeat as u32)), &row[2..]);
        }
        statistics
    }

    /// The return of every episode: the sum of its rewards.
    pub fn returns(&self) -> &[f32] {
        &self.returns
    }

    /// The steps of every episode.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Mean of all returns; NaN without episodes.
    pub fn mean_return(&self) -> f64 {
        self.returns.iter().map(|value| f64::from(*value)).sum::<f64>() / self.returns.len() as f64
    }

    /// Observations that a normalizer leaves out, since a value is not finite, or too far from the mean; 0 without normalization.
    pub fn left_out(&self) -> u64 {
        self.moments.left_out
    }

    /// Steps of all episodes, each until its own end: an episode that has ended counts no steps while others continue.
    pub fn env_steps(&self) -> u64 {
        self.lengths.iter().map(|length| u64::from(*length)).sum()
    }

    /// The mean return of each member over its `episodes`.
    pub(super) fn member_returns(&self, episodes: usize) -> Vec<f32> {
        let mean = |returns: &[f32]| returns.iter().map(|value| f64::from(*value)).sum::<f64>() / episodes as f64;
        self.returns.chunks_exact(episodes).map(|returns| mean(returns) as f32).collect()
    }
}

/// The episodes of a generation.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutResult {
    /// The mean return of every member: for [`tell`](eggroll_train::EvolutionStrategy::tell).
    pub fitness: Fitness,
    /// Every episode.
    pub episodes: EpisodeStatistics,
}

impl RolloutResult {
    /// Statistics of members that have run so many episodes each.
    pub(super) fn of(episodes: EpisodeStatistics, each: usize) -> Self {
        Self { fitness: episodes.member_returns(each).into(), episodes }
    }
}
