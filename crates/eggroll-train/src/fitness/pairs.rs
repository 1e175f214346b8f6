//! The two members of a pair against each other.

use super::Fitness;
use eggroll_core::integer::VoteLevels;
use eggroll_core::ops::integer::MOST_PART_VOTE;
use std::iter::Sum;

const MOST_VOTE: f64 = MOST_PART_VOTE as f64;

/// How much of a later step's score counts for each step before it, of layers that [act on later steps](eggroll_core::scope::acts_later).
const LATER: f32 = 0.5;

/// Folds shaped fitness into one weight for each antithetic pair: `f_{2q} − f_{2q+1}`.
pub fn fold_pairs(shaped: &[f64]) -> Vec<f64> {
    shaped.chunks_exact(2).map(|pair| pair[0] - pair[1]).collect()
}

impl Fitness {
    /// The votes of all pairs of `members`: the sign of `f_{2q} − f_{2q+1}`, times a level for its magnitude. The fitness of a member is
    /// the sum of its scores over tasks; integer scores are compared exactly.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_core::integer::VoteLevels;
    /// use eggroll_train::Fitness;
    ///
    /// let fitness = Fitness::from(vec![9, 0, 5, 5, 0, 4, 4, 3]); // differences 9, 0, −4, 1: of a mean magnitude of 3.5
    /// assert_eq!(fitness.pair_votes(8, VoteLevels::Sign), [1, 0, -1, 1]);
    /// assert_eq!(fitness.pair_votes(8, VoteLevels::Three), [1, 0, -1, 0]);
    /// assert_eq!(fitness.pair_votes(8, VoteLevels::Five), [2, 0, -1, 0]);
    /// ```
    pub fn pair_votes(&self, members: usize, levels: VoteLevels) -> Vec<i8> {
        if levels == VoteLevels::Sign {
            return self.pair_signs(members);
        }
        let exact = self.integers().map(|scores| {
            let fitness = |m: usize| scores[m..].iter().step_by(members).map(|score| i128::from(*score)).sum::<i128>();
            (0..members / 2).map(|q| fitness(2 * q) - fitness(2 * q + 1)).collect::<Vec<_>>()
        });
        match exact {
            Some(differences) => {
                let sum: i128 = differences.iter().map(|difference| difference.abs()).sum();
                let pairs = differences.len() as i128;
                let vote = |difference: &i128| {
                    // Whether the magnitude is at least `quarters/4` of the mean.
                    let reaches = |quarters: i128| 4 * difference.abs() * pairs >= quarters * sum;
                    level(levels, difference.signum() as i8, reaches)
                };
                differences.iter().map(vote).collect()
            }
            None => {
                let (scores, _) = self.finite();
                let fitness = |m: usize| scores[m..].iter().step_by(members).sum::<f64>();
                let differences: Vec<f64> = (0..members / 2).map(|q| fitness(2 * q) - fitness(2 * q + 1)).collect();
                let mean =
                    differences.iter().map(|difference| difference.abs()).sum::<f64>() / differences.len() as f64;
                let vote = |difference: &f64| {
                    let sign = i8::from(*difference > 0.0) - i8::from(*difference < 0.0);
                    level(levels, sign, |quarters| difference.abs() >= quarters as f64 / 4.0 * mean)
                };
                differences.iter().map(vote).collect()
            }
        }
    }

    /// The votes of all pairs of `members` for every part, `[parts, pairs]`: `f_{t,2q} − f_{t,2q+1}` in units of the pair's mean magnitude over
    /// parts, rounded, within ±7. With `later`, of parts that are steps of a sequence, a later step counts too, by ½ for each step between. If
    /// one of its members has no finite score for a part, a pair has no vote for it.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_train::Fitness;
    ///
    /// let fitness = Fitness::from(vec![9, 0, 5, 6, -20, 0]).with_tasks(3); // differences 9, −1, −20 in three parts: of a mean magnitude of 10
    /// assert_eq!(fitness.part_votes(2, false), [1, 0, -2]);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `members` is odd, or the scores do not belong to this many members.
    #[track_caller]
    pub fn part_votes(&self, members: usize, later: bool) -> Vec<i8> {
        let parts = self.tasks();
        assert!(
            members > 0 && members.is_multiple_of(2) && self.values().len() == parts * members,
            "votes by part: {} scores of {parts} parts do not fit pairs of {members} members",
            self.values().len()
        );
        let pairs = members / 2;
        let difference = |at: usize| (self.exact(2 * at) - self.exact(2 * at + 1)) as f32;
        let finite = |difference: f32| if difference.is_finite() { difference } else { 0.0 };
        let own: Vec<f32> = (0..parts * pairs).map(difference).map(finite).collect();
        let differences = if later { with_later_steps(&own, pairs, self.steps()) } else { own };
        let unit = |pair: usize| {
            let each = differences[pair..].iter().step_by(pairs);
            each.map(|difference| f64::from(difference.abs())).sum::<f64>() / parts as f64
        };
        let units: Vec<f64> = (0..pairs).map(unit).collect();
        let vote = |(at, difference): (usize, &f32)| match units[at % pairs] {
            0.0 => 0,
            unit => (f64::from(*difference) / unit).round().clamp(-MOST_VOTE, MOST_VOTE) as i8,
        };
        differences.iter().enumerate().map(vote).collect()
    }

    /// `sign(f_{2q} − f_{2q+1})` of every pair of `members`: the votes of integer parameters. The fitness of a member is the
    /// sum of its scores over tasks; integer scores are compared exactly.
    pub fn pair_signs(&self, members: usize) -> Vec<i8> {
        fn signs<T: PartialOrd + Sum<T> + Copy>(scores: &[T], members: usize) -> Vec<i8> {
            let fitness = |m: usize| scores[m..].iter().step_by(members).copied().sum::<T>();
            let sign = |pair: usize| {
                let [plus, minus] = [fitness(2 * pair), fitness(2 * pair + 1)];
                i8::from(plus > minus) - i8::from(plus < minus)
            };
            (0..members / 2).map(sign).collect()
        }
        match self.integers() {
            Some(scores) => signs(&scores.iter().copied().map(i64::from).collect::<Vec<_>>(), members),
            None => signs(&self.finite().0, members),
        }
    }
}

/// A vote of this sign; `reaches` says whether its magnitude is at least so many quarters of the mean.
fn level(levels: VoteLevels, sign: i8, reaches: impl Fn(i128) -> bool) -> i8 {
    sign * match levels {
        VoteLevels::Sign => 1,
        VoteLevels::Three => i8::from(reaches(3)),
        VoteLevels::Five => i8::from(reaches(2)) + i8::from(reaches(6)),
    }
}

/// `c_t = Σ_{s ≥ t} γ^(s−t)·w_s` within sequences of `steps` steps.
pub(crate) fn with_later_steps(own: &[f32], pairs: usize, steps: usize) -> Vec<f32> {
    let mut sums = own.to_vec();
    for sequence in sums.chunks_mut(steps * pairs) {
        for step in (1..steps).rev() {
            let (before, after) = sequence.split_at_mut(step * pairs);
            let before = &mut before[(step - 1) * pairs..];
            before.iter_mut().zip(after).for_each(|(before, after)| *before += LATER * *after);
        }
    }
    sums
}
