//! Fitness shaping: pure functions of the finite scores of a generation.

use crate::config::Named;
use crate::error::{ConfigError, Error};
use eggroll_core::NoiserError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::str::FromStr;
use std::sync::Arc;

/// How scores become the weights `f` of the estimate. Every rule maps equal scores to equal weights, so a constant
/// fitness cancels in every pair.
///
/// Where members have answered several tasks, each task's scores are shaped alone and a member's weight is the mean over
/// tasks ([`shape_tasks`](Self::shape_tasks)): no task counts more because its scores are larger.
///
/// # Example
///
/// ```
/// use eggroll_train::FitnessShaping;
///
/// let ranks = FitnessShaping::CenteredRank.shape(&[3.0, 100.0, 3.0, -1.0]);
/// assert_eq!(ranks, [0.0, 0.5, 0.0, -0.5]);
///
/// assert_eq!("centered_rank".parse::<FitnessShaping>().unwrap(), FitnessShaping::CenteredRank);
/// assert_eq!("group_z_score:4".parse::<FitnessShaping>().unwrap(), FitnessShaping::GroupZScore { size: 4 });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FitnessShaping {
    /// `f` unchanged.
    Raw,
    /// `(f − mean) / √(var + 1e-5)`, population variance (HyperscaleES).
    #[default]
    ZScore,
    /// `(f − mean) / (std + 1e-8)`, sample standard deviation (as PyTorch computes it).
    SampleZScore,
    /// `(f − mean of its group) / √(var of all + 1e-5)`, groups of consecutive members.
    GroupZScore {
        /// Members of a group; divides the population.
        size: usize,
    },
    /// Ranks mapped linearly to `[−½, ½]`, ties share their mean rank (Salimans et al., arXiv 1703.03864).
    CenteredRank,
    /// `±½·sign(f₊ − f₋)` for the members of a pair, so that a pair's folded weight is the sign.
    PairSign,
    /// `(f − f₀) / (std + 1e-8)` in groups of consecutive members, `f₀` the first score of the group and the standard deviation that
    /// of the group's population; 0 for its first two members, which the noiser of the same name
    /// ([`BaselineSubtractionConfig`](eggroll_core::BaselineSubtractionConfig)) leaves unperturbed (HyperscaleES).
    BaselineSubtraction {
        /// Members of a group: even, at least 4; divides the population.
        size: usize,
    },
    /// A function of the program.
    Custom(CustomShaping),
}

/// A fitness shaping of the program: a pure function from the scores of all members, of one task, to as many weights, and the name
/// that it is saved under. Two are equal if their names are. Scores are finite; members `2q` and `2q + 1` are a pair.
///
/// Files hold the name only. To continue a run, give the configuration with the function again
/// ([`with_functions_of`](crate::EvolutionStrategyConfig::with_functions_of); checkpoints of `eggroll-run` do it with the configuration that
/// they are given).
///
/// # Example
///
/// ```
/// use eggroll_train::{CustomShaping, FitnessShaping};
///
/// // Only what is above the mean counts.
/// let above = CustomShaping::new("above the mean", |scores| {
///     let mean = scores.iter().sum::<f64>() / scores.len() as f64;
///     scores.iter().map(|score| (score - mean).max(0.0)).collect()
/// });
/// assert_eq!(FitnessShaping::from(above).shape(&[1.0, 3.0, 2.0, 2.0]), [0.0, 1.0, 0.0, 0.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CustomShaping(Named<Shape>);

type Shape = dyn Fn(&[f64]) -> Vec<f64> + Send + Sync;

impl CustomShaping {
    /// Takes a function from scores to weights.
    pub fn new(name: impl Into<String>, shape: impl Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static) -> Self {
        Self(Named::new(name, Arc::new(shape)))
    }

    fn shape(&self, scores: &[f64]) -> Vec<f64> {
        let weights = match self.0.function("fitness shaping") {
            Ok(shape) => shape(scores),
            Err(error) => panic!("{error}"),
        };
        assert!(
            weights.len() == scores.len(),
            "the fitness shaping \"{}\" returned {} weights for {} scores",
            self.0.name,
            weights.len(),
            scores.len()
        );
        weights
    }
}

impl From<CustomShaping> for FitnessShaping {
    fn from(custom: CustomShaping) -> Self {
        Self::Custom(custom)
    }
}

/// The rule of that name, as in configuration files; the size of its groups follows a colon. Hyphens count as underscores.
impl FromStr for FitnessShaping {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let text = text.replace('-', "_");
        let rule = match text.split_once(':').map(|(name, size)| (name, size.parse::<usize>())) {
            Some((name, Ok(size))) => json!({ name: { "size": size } }),
            _ => json!(text),
        };
        serde_json::from_value(rule).map_err(|error| ConfigError::ShapingName(error.to_string()))
    }
}

impl FitnessShaping {
    /// Checks the rule against a population.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Group`] if groups do not divide the population, [`Error::Noiser`] if they have no pair apart from their baselines.
    pub fn validate(&self, population: usize) -> Result<(), Error> {
        match *self {
            Self::Custom(ref custom) => Ok(custom.0.function("fitness shaping").map(drop)?),
            Self::BaselineSubtraction { size } if size < 4 || !size.is_multiple_of(2) => {
                Err(NoiserError::BaselineGroup(size).into())
            }
            Self::GroupZScore { size } | Self::BaselineSubtraction { size }
                if size == 0 || !population.is_multiple_of(size) =>
            {
                Err(ConfigError::Group { group: size, population }.into())
            }
            _ => Ok(()),
        }
    }

    /// Shapes the scores of one generation. Scores must be finite ([`Fitness::finite`](crate::Fitness::finite)).
    pub fn shape(&self, scores: &[f64]) -> Vec<f64> {
        match *self {
            Self::Custom(ref custom) => custom.shape(scores),
            Self::Raw => scores.to_vec(),
            Self::ZScore => group_z_score(scores, scores.len()),
            Self::GroupZScore { size } => group_z_score(scores, size),
            Self::SampleZScore => sample_z_score(scores),
            Self::CenteredRank => centered_rank(scores),
            Self::PairSign => scores.chunks(2).flat_map(pair_sign).collect(),
            Self::BaselineSubtraction { size } => scores.chunks(size.max(1)).flat_map(baseline).collect(),
        }
    }

    /// Shapes scores of several tasks, `[tasks, members]` row after row, each task alone, and returns the mean over
    /// tasks: `[members]`.
    ///
    /// # Panics
    ///
    /// Panics if the scores are not those of whole tasks.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_train::FitnessShaping;
    ///
    /// let weights = FitnessShaping::CenteredRank.shape_tasks(&[1.0, 2.0, 3.0, 700.0, 600.0, 500.0], 3);
    /// assert_eq!(weights, [0.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn shape_tasks(&self, scores: &[f64], members: usize) -> Vec<f64> {
        let tasks = scores.len() / members.max(1);
        assert!(
            tasks > 0 && scores.len() == tasks * members,
            "{} scores are not those of whole tasks to {members} members",
            scores.len()
        );
        let mut sums = self.shape(&scores[..members]);
        for row in scores.chunks(members).skip(1) {
            sums.iter_mut().zip(self.shape(row)).for_each(|(sum, weight)| *sum += weight);
        }
        sums.iter_mut().for_each(|sum| *sum /= tasks as f64);
        sums
    }
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

fn sum_of_squares(scores: &[f64]) -> f64 {
    let mean = mean(scores);
    scores.iter().map(|score| (score - mean).powi(2)).sum()
}

fn group_z_score(scores: &[f64], size: usize) -> Vec<f64> {
    let scale = (sum_of_squares(scores) / scores.len() as f64 + 1e-5).sqrt();
    let group = |group: &[f64]| {
        let mean = mean(group);
        group.iter().map(|score| (score - mean) / scale).collect::<Vec<_>>()
    };
    scores.chunks(size.max(1)).flat_map(group).collect()
}

fn sample_z_score(scores: &[f64]) -> Vec<f64> {
    let std = (sum_of_squares(scores) / (scores.len() as f64 - 1.0)).sqrt();
    let mean = mean(scores);
    scores.iter().map(|score| (score - mean) / (std + 1e-8)).collect()
}

fn centered_rank(scores: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let last = (scores.len() as f64 - 1.0).max(1.0);
    let mut ranks = vec![0.0; scores.len()];
    let mut start = 0;
    for tied in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        let rank = start as f64 + (tied.len() as f64 - 1.0) / 2.0;
        for member in tied {
            ranks[*member] = rank / last - 0.5;
        }
        start += tied.len();
    }
    if order.len() < 2 { vec![0.0; scores.len()] } else { ranks }
}

fn baseline(group: &[f64]) -> Vec<f64> {
    let std = (sum_of_squares(group) / group.len() as f64).sqrt();
    let weight = |(m, score): (usize, &f64)| if m < 2 { 0.0 } else { (score - group[0]) / (std + 1e-8) };
    group.iter().enumerate().map(weight).collect()
}

fn pair_sign(pair: &[f64]) -> [f64; 2] {
    let difference = pair[0] - pair[1];
    let sign = if difference == 0.0 { 0.0 } else { difference.signum() };
    [0.5 * sign, -0.5 * sign]
}
