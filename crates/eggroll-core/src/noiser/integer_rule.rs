//! The rule of a noiser for integer parameters.

use super::NoiserError;
use crate::integer::{MAX_SIGMA_SHIFT, VoteLevels, Votes, step_limit, threshold};
use crate::role::Role;
use serde::{Deserialize, Serialize};

/// How a noiser perturbs and updates integer parameters. Made of settings by [`QEggrollConfig::rule`](crate::QEggrollConfig::rule).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegerRule {
    rank: usize,
    sigma_shift: u32,
    alpha: f64,
    decay: u64,
    votes: Votes,
    #[serde(default)]
    levels: VoteLevels,
}

impl IntegerRule {
    pub(super) fn new(
        rank: usize,
        sigma_shift: u32,
        (alpha, decay): (f64, u64),
        votes: Votes,
        levels: VoteLevels,
    ) -> Result<Self, NoiserError> {
        if rank == 0 {
            return Err(NoiserError::Rank(0));
        }
        if sigma_shift > MAX_SIGMA_SHIFT {
            return Err(NoiserError::SigmaShift(sigma_shift));
        }
        if !(alpha > 0.0 && alpha <= 64.0) {
            return Err(NoiserError::Alpha(alpha));
        }
        if decay == 0 {
            return Err(NoiserError::Decay(0));
        }
        Ok(Self { rank, sigma_shift, alpha, decay, votes, levels })
    }

    /// The role of an integer parameter of this shape.
    pub fn role(&self, shape: &[usize]) -> Role {
        match shape.len() {
            2 => Role::LowRank { rank: self.rank },
            _ => Role::Dense,
        }
    }

    /// `σ = 2^−sigma_shift`
    pub fn sigma_shift(&self) -> u32 {
        self.sigma_shift
    }

    /// The noise that counts in a vote.
    pub fn votes(&self) -> Votes {
        self.votes
    }

    /// How finely pairs vote.
    pub fn levels(&self) -> VoteLevels {
        self.levels
    }

    /// The smallest sum of votes that moves a weight in a generation with these votes of pairs; see [`crate::integer::step_limit`].
    pub fn step_limit(&self, generation: u64, votes: &[i8]) -> i32 {
        let pairs = match self.levels {
            VoteLevels::Sign => votes.len(),
            _ => votes.iter().map(|vote| usize::from(vote.unsigned_abs()).pow(2)).sum::<usize>().max(1),
        };
        step_limit(threshold(self.alpha, self.decay, generation), pairs, self.votes)
    }
}
