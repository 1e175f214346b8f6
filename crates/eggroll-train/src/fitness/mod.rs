//! Fitness of a generation, from raw scores to one weight for each pair.

mod pair_statistics;
mod pairs;
mod scores;
mod shaping;
mod top_pairs;
mod utilities;

pub use pair_statistics::PairStatistics;
pub use pairs::fold_pairs;
pub use scores::Scores;
pub use shaping::{CustomShaping, FitnessShaping};

use burn::tensor::{DType, Tensor};
use eggroll_core::{counters, profile};

/// Scores of all members of one generation, higher is better: one for each member, or one for each task and member,
/// `[tasks, members]` row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitness {
    values: Vec<f32>,
    integers: Option<Vec<i32>>,
    tasks: usize,
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

    /// This fitness as the scores of several tasks, `[tasks, members]` row after row.
    ///
    /// # Panics
    ///
    /// Panics if the scores are not a multiple of the tasks.
    #[track_caller]
    pub fn with_tasks(self, tasks: usize) -> Self {
        let scores = self.values.len();
        assert!(tasks > 0 && scores.is_multiple_of(tasks), "{scores} scores are not those of {tasks} tasks");
        Self { tasks, ..self }
    }

    /// Tasks that every member has a score of.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// The score of a member: the mean over tasks.
    ///
    /// # Panics
    ///
    /// Panics if there is no such member.
    #[track_caller]
    pub fn score(&self, member: usize) -> f64 {
        let members = self.values.len() / self.tasks;
        assert!(member < members, "there is no member {member} among {members}");
        let sum: f64 = self.values[member..].iter().step_by(members).copied().map(f64::from).sum();
        sum / self.tasks as f64
    }

    /// The member with the highest finite score, of several the first; `None` if no score is finite.
    /// [`Population::member`](crate::Population::member) makes it a model.
    pub fn best(&self) -> Option<usize> {
        let members = self.values.len() / self.tasks;
        let scores = (0..members).map(|member| (member, self.score(member))).filter(|(_, score)| score.is_finite());
        scores.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(member, _)| member)
    }

    /// Mean of the finite scores; NaN if there is none.
    pub fn mean(&self) -> f64 {
        let finite = || self.values.iter().copied().filter(|score| score.is_finite()).map(f64::from);
        finite().sum::<f64>() / finite().count() as f64
    }

    /// Standard deviation of the finite scores; NaN if there is none.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let finite = || self.values.iter().copied().filter(|score| score.is_finite()).map(f64::from);
        (finite().map(|score| (score - mean).powi(2)).sum::<f64>() / finite().count() as f64).sqrt()
    }

    /// The scores, member by member, task after task.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Share of pairs, of all tasks, whose members have equal scores, from 0 to 1: in integer strategies they have no vote.
    pub fn tied_pairs(&self) -> f64 {
        self.tied_pairs_of(self.values.len())
    }

    /// Share of pairs of `members` whose sums over tasks are equal.
    pub(crate) fn tied_pairs_of(&self, members: usize) -> f64 {
        let signs = self.pair_signs(members);
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
        Self { values, integers: None, tasks: 1 }
    }
}

impl From<Vec<i32>> for Fitness {
    fn from(integers: Vec<i32>) -> Self {
        Self { values: integers.iter().map(|score| *score as f32).collect(), integers: Some(integers), tasks: 1 }
    }
}
