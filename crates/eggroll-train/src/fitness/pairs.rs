//! The two members of a pair against each other.

use super::Fitness;
use std::iter::Sum;

/// Folds shaped fitness into one weight for each antithetic pair: `f_{2q} − f_{2q+1}`.
pub fn fold_pairs(shaped: &[f64]) -> Vec<f64> {
    shaped.chunks_exact(2).map(|pair| pair[0] - pair[1]).collect()
}

impl Fitness {
    /// `sign(f_{2q} − f_{2q+1})` of every pair of `members`, whose fitness is the sum of their scores over tasks: the votes of
    /// integer parameters. Integer scores are compared exactly.
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
