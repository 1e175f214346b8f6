//! Fitness of a generation, from raw scores to one weight for each pair.

mod pairs;
mod scores;
mod shaping;

pub use pairs::fold_pairs;
pub use scores::Scores;
pub use shaping::FitnessShaping;

use burn::tensor::{DType, Tensor};
use eggroll_core::{counters, profile};

/// Scores of all members of one generation, higher is better: one for each member, or one for each question and member,
/// `[questions, members]` row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitness {
    values: Vec<f32>,
    integers: Option<Vec<i32>>,
}

impl Fitness {
    /// Reads the scores of all members to the host: the one host read of a generation.
    ///
    /// # Shapes
    ///
    /// - scores: `[members]`
    pub fn read(scores: Tensor<1>) -> Self {
        counters::add_host_read();
        let scores = scores.cast(DType::F32);
        let waiting = profile::waiting();
        let data = scores.into_data();
        drop(waiting);
        Self::from(data.try_to_vec::<f32>().expect("cast to f32"))
    }

    /// The scores as integers, if they are: compared exactly where f32 would round.
    pub fn integers(&self) -> Option<&[i32]> {
        self.integers.as_deref()
    }

    /// The scores, member by member, question after question.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Share of pairs, of all questions, whose members have equal scores, from 0 to 1: in integer strategies they have no vote.
    pub fn tied_pairs(&self) -> f64 {
        let signs = self.pair_signs(self.values.len());
        signs.iter().filter(|sign| **sign == 0).count() as f64 / signs.len().max(1) as f64
    }

    /// The scores with those that are not finite replaced, and how many there were: NaN and −∞ count as the worst
    /// finite score, +∞ as the best; without any finite score all are equal.
    pub fn finite(&self) -> (Vec<f64>, usize) {
        let finite = || self.values.iter().copied().filter(|f| f.is_finite());
        let worst = finite().reduce(f32::min).unwrap_or(0.0);
        let best = finite().reduce(f32::max).unwrap_or(0.0);
        let replaced = self.values.len() - finite().count();
        let value = |f: f32| {
            if f.is_finite() {
                f
            } else if f == f32::INFINITY {
                best
            } else {
                worst
            }
        };
        (self.values.iter().map(|f| f64::from(value(*f))).collect(), replaced)
    }
}

impl From<Vec<f32>> for Fitness {
    fn from(values: Vec<f32>) -> Self {
        Self { values, integers: None }
    }
}

impl From<Vec<i32>> for Fitness {
    fn from(integers: Vec<i32>) -> Self {
        Self { values: integers.iter().map(|score| *score as f32).collect(), integers: Some(integers) }
    }
}
