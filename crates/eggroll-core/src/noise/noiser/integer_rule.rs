//! The rule of a noiser for integer parameters.

use super::NoiserError;
use crate::arithmetic::integer::{MAX_SIGMA_SHIFT, VoteLevels, Votes, step_limit, threshold};
use crate::noise::role::Role;
use serde::{Deserialize, Serialize};

/// How a noiser perturbs and updates integer parameters. Made by [`QEggrollConfig::rule`](crate::QEggrollConfig::rule).
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
    #[serde(default)]
    reference_limit: bool,
}

impl IntegerRule {
    pub(super) fn new(
        rank: usize,
        sigma_shift: u32,
        (alpha, decay): (f64, u64),
        votes: Votes,
        (levels, reference_limit): (VoteLevels, bool),
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
        Ok(Self { rank, sigma_shift, alpha, decay, votes, levels, reference_limit })
    }

    /// The role of an integer parameter of this shape.
    pub fn role(&self, shape: &[usize]) -> Role {
        match shape.len() {
            2 => Role::LowRank { rank: self.rank },
            _ => Role::Dense,
        }
    }

    /// `σ = 2^−sigma_shift`, times `√rank` for a matrix.
    pub fn sigma_shift(&self) -> u32 {
        self.sigma_shift
    }

    /// The noise that counts in a vote.
    pub fn votes(&self) -> Votes {
        self.votes
    }

    /// Resolution of a pair's vote.
    pub fn levels(&self) -> VoteLevels {
        self.levels
    }

    /// Whether these votes of pairs can move a weight. If all pairs are tied, they do so only by
    /// the [reference's rule](crate::QEggrollConfig::with_reference_limit) for signs.
    pub fn moves(&self, votes: &[i8]) -> bool {
        self.counts_ties() || votes.iter().any(|vote| *vote != 0)
    }

    /// The smallest sum of votes that moves a weight in a generation with these votes of pairs. `rank` is the number of columns of the
    /// weight's noise, 0 for a vector. The limit is for `Σ f_q²·max(rank, 1)` products, or the number that the
    /// [reference](crate::QEggrollConfig::with_reference_limit) counts; see [`crate::arithmetic::integer::step_limit`].
    pub fn step_limit(&self, generation: u64, rank: usize, votes: &[i8]) -> i32 {
        let pairs = match self.counts_ties() {
            true => votes.len(),
            false => votes.iter().map(|vote| usize::from(vote.unsigned_abs()).pow(2)).sum::<usize>().max(1),
        };
        let each = if self.reference_limit { 1 } else { rank.max(1) };
        step_limit(threshold(self.alpha, self.decay, generation), pairs * each, self.votes)
    }

    fn counts_ties(&self) -> bool {
        self.reference_limit && self.levels == VoteLevels::Sign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(levels: VoteLevels, reference_limit: bool) -> IntegerRule {
        IntegerRule::new(1, 4, (4.0, 1000), Votes::Values, (levels, reference_limit)).expect("a rule")
    }

    #[test]
    fn limits_follow_ranks_and_ties() {
        let limit = |levels, reference, rank, votes: &[i8]| {
            rule(levels, reference).step_limit(1000, rank, votes) / (29 * 16) // of a threshold of 29
        };
        let (all, tied) = ([1, -1, 1, 1, -1, -1, 1, 1, 1], [1, 0, 0, -1, 0, 1, 1, 0, 0]);
        let (five, leveled) = (VoteLevels::Five, [2, 0, -2, 1]);
        assert_eq!([1, 2, 4].map(|rank| limit(VoteLevels::Sign, false, rank, &all)), [3, 4, 6]);
        assert_eq!([0, 1, 4].map(|rank| limit(VoteLevels::Sign, false, rank, &tied)), [2, 2, 4]);
        assert_eq!([1, 4].map(|rank| limit(five, false, rank, &leveled)), [3, 6]);
        assert_eq!([0, 1, 4].map(|rank| limit(VoteLevels::Sign, true, rank, &tied)), [3; 3]);
        assert_eq!([1, 4].map(|rank| limit(five, true, rank, &leveled)), [3; 2]);
    }

    #[test]
    fn votes_of_nobody_move_nothing() {
        let moves = |levels, reference, votes: &[i8]| rule(levels, reference).moves(votes);
        assert!(moves(VoteLevels::Sign, false, &[0, 1]) && !moves(VoteLevels::Sign, false, &[0, 0]));
        // The reference's first limit is 0, which moves weights without votes down.
        assert!(moves(VoteLevels::Sign, true, &[0, 0]) && !moves(VoteLevels::Five, true, &[0, 0]));
    }
}
