//! Fitness of a generation, from raw scores to one weight for each pair.

mod pair_statistics;
mod pairs;
mod scores;
mod shaping;
mod top_pairs;
mod utilities;

pub use pair_statistics::PairStatistics;
pub use pairs::fold_pairs;
pub(crate) use pairs::with_later_steps;
pub use scores::Scores;
pub use shaping::{CustomShaping, FitnessShaping};

use burn::tensor::kind::Basic;
use burn::tensor::{DType, Tensor, TensorData};
use eggroll_core::{counters, profile};

/// Scores of all members of one generation, higher is better: one for each member, or one for each task and member,
/// `[tasks, members]` row after row. They are f32, or exact integers of 32 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitness {
    values: Vec<f32>,
    integers: Option<Vec<i32>>,
    tasks: usize,
    steps: usize,
}

impl Fitness {
    /// Reads the scores of all members to the host: the one host read of a generation. Scores of f64 are rounded to f32.
    ///
    /// # Shapes
    ///
    /// - scores: `[members]`
    ///
    /// # Panics
    ///
    /// Panics if a finite score does not fit f32, and names it.
    #[track_caller]
    pub fn read(scores: Tensor<1>) -> Self {
        let wide = scores.dtype() == DType::F64;
        let data = to_host(if wide { scores } else { scores.cast(DType::F32) });
        if !wide {
            return Self::from(data.try_to_vec::<f32>().expect("cast to f32"));
        }
        let narrow = |(number, score): (usize, f64)| {
            assert!(
                !score.is_finite() || (score as f32).is_finite(),
                "score {number} is {score:e}: f32 holds up to ±{:e}; scale the scores down",
                f32::MAX
            );
            score as f32
        };
        Self::from(data.iter::<f64>().enumerate().map(narrow).collect::<Vec<_>>())
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
        assert!(tasks > 0 && scores.is_multiple_of(tasks), "{scores} scores do not fit {tasks} tasks");
        Self { tasks, steps: 1, ..self }
    }

    /// Tasks, or [parts](crate::Credit#parts), for which every member has a score.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// This fitness as the scores of sequences: each run of `steps` tasks is a sequence in order of time.
    ///
    /// # Panics
    ///
    /// Panics if the tasks are not a multiple of the steps.
    #[track_caller]
    pub fn with_steps(self, steps: usize) -> Self {
        let tasks = self.tasks;
        assert!(steps > 0 && tasks.is_multiple_of(steps), "{tasks} tasks are not sequences of {steps} steps");
        Self { steps, ..self }
    }

    /// Steps of a sequence; 1 if tasks have no order of time.
    pub fn steps(&self) -> usize {
        self.steps
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
        let sum: f64 = (0..self.tasks).map(|task| self.exact(task * members + member)).sum();
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
        self.finite_scores().sum::<f64>() / self.finite_scores().count() as f64
    }

    /// Standard deviation of the finite scores; NaN if there is none.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.finite_scores().map(|score| (score - mean).powi(2)).sum::<f64>() / self.finite_scores().count() as f64)
            .sqrt()
    }

    /// The finite scores, in their order.
    pub(crate) fn finite_scores(&self) -> impl Iterator<Item = f64> {
        (0..self.values.len()).map(|place| self.exact(place)).filter(|score| score.is_finite())
    }

    /// The score at a place of [`values`](Self::values), without rounding.
    fn exact(&self, place: usize) -> f64 {
        match &self.integers {
            Some(integers) => f64::from(integers[place]),
            None => f64::from(self.values[place]),
        }
    }

    /// The scores, member by member, task after task; [integers](Self::integers) rounded to f32.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Share of pairs, of all tasks, whose members have equal scores, from 0 to 1: in integer strategies they have no vote.
    pub fn tied_pairs(&self) -> f64 {
        let signs = self.pair_signs(self.values.len());
        signs.iter().filter(|sign| **sign == 0).count() as f64 / signs.len().max(1) as f64
    }

    /// Replaces scores that are not finite, and counts them. NaN and −∞ become the worst finite score of their task, +∞ its best.
    /// In a task without a finite score, all become equal.
    pub fn finite(&self) -> (Vec<f64>, usize) {
        let members = self.values.len() / self.tasks;
        (self.finite_by(members, None, false), self.values.iter().filter(|score| !score.is_finite()).count())
    }

    /// [`finite`](Self::finite) for tasks of `members` scores each. If a rule has groups of `size` members with separate data, worst and best are those
    /// in the group, or in its task if the group has no finite score. If `scaled`, each group has its own scale. Then a group of equal scores also takes
    /// them from the task, since replaced scores would tie with its own.
    pub(crate) fn finite_by(&self, members: usize, size: Option<usize>, scaled: bool) -> Vec<f64> {
        let mut scores: Vec<f64> = match &self.integers {
            Some(integers) => integers.iter().map(|score| f64::from(*score)).collect(),
            None => self.values.iter().map(|score| f64::from(*score)).collect(),
        };
        if scores.iter().all(|score| score.is_finite()) {
            return scores;
        }
        for task in scores.chunks_mut(members.max(1)) {
            let [worst, best] = ends(task).unwrap_or_default();
            for group in task.chunks_mut(size.unwrap_or(members).max(1)) {
                let [worst, best] =
                    ends(group).filter(|[worst, best]| worst < best || !scaled).unwrap_or([worst, best]);
                for score in group.iter_mut().filter(|score| !score.is_finite()) {
                    *score = if *score == f64::INFINITY { best } else { worst };
                }
            }
        }
        scores
    }
}

/// The lowest and the highest finite score, if there is any.
fn ends(scores: &[f64]) -> Option<[f64; 2]> {
    let finite = scores.iter().copied().filter(|score| score.is_finite()).map(|score| [score; 2]);
    finite.reduce(|[worst, best], [low, high]| [worst.min(low), best.max(high)])
}

impl From<Vec<f32>> for Fitness {
    fn from(values: Vec<f32>) -> Self {
        Self { values, integers: None, tasks: 1, steps: 1 }
    }
}

impl From<Vec<i32>> for Fitness {
    fn from(integers: Vec<i32>) -> Self {
        Self {
            values: integers.iter().map(|score| *score as f32).collect(),
            integers: Some(integers),
            tasks: 1,
            steps: 1,
        }
    }
}

/// The one read of a generation's scores.
fn to_host<K: Basic>(scores: Tensor<1, K>) -> TensorData {
    counters::add_host_read();
    let waiting = profile::waiting();
    let data = scores.into_data();
    drop(waiting);
    data
}
