//! Fitness shaping: pure functions of the finite scores of a generation.

use super::Fitness;
use super::top_pairs::top_pairs;
use super::utilities::utilities;
use crate::error::{ConfigError, Error};
use crate::named::Named;
use eggroll_core::NoiserError;
use eggroll_core::scope::suspended;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::str::FromStr;
use std::sync::Arc;

/// How scores become the weights `f` of the estimate. Every rule maps equal scores to equal weights: a constant
/// fitness cancels in every pair.
///
/// With several tasks, each task's scores are shaped alone and a member's weight is the mean over tasks
/// ([`shape_tasks`](Self::shape_tasks)). So no task counts more because its scores are larger. If weights learn
/// [by part](crate::Credit#shaping), [`Standardized`](Self::Standardized) has one deviation for all parts.
///
/// An estimate takes one weight for each mirrored (antithetic) pair, `f₊ − f₋` ([`fold_pairs`](crate::fold_pairs())). A term that a rule
/// subtracts from both members of a pair, such as a mean or the score of a baseline, cancels. Groups are consecutive members; they hold
/// whole pairs, so their size is even.
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
/// let groups = FitnessShaping::GroupStandardized { size: 4 };
/// assert_eq!("group_standardized:4".parse::<FitnessShaping>().unwrap(), groups);
/// assert_eq!("top_pairs:16".parse::<FitnessShaping>().unwrap(), FitnessShaping::TopPairs { pairs: 16 });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FitnessShaping {
    /// `f` unchanged.
    Raw,
    /// `(f − mean) / √(var + (ε·rms)²)`, population variance, `ε = 2⁻²⁰`: the z-score (standard score). It is independent of the scale of
    /// the fitness, as `ε` is relative to the root mean square of the scores. For [credit by part](crate::Credit) one deviation counts for
    /// all parts.
    ///
    /// `ε` is eight roundings of f32: scores that differ only by roundings have small weights, and equal scores have
    /// weight 0.
    #[default]
    Standardized,
    /// `(f − mean) / √(var + 1e-5)`, population variance (HyperscaleES). For reproduction: 1e-5 is absolute, so weights shrink with the
    /// fitness' standard deviation. They are 0.95 of [`Standardized`](Self::Standardized) at 1e-2, 0.30 at 1e-3 and 0.03 at 1e-4.
    ZScore,
    /// `(f − mean) / (std + 1e-8)`, sample standard deviation (as PyTorch computes it).
    SampleZScore,
    /// `(f − mean of its group) / √(var of all + 1e-5)` (HyperscaleES). For reproduction only: the mean of a group cancels in its
    /// pairs, and the deviation is taken over all scores. Every pair thus has the weight of [`ZScore`](Self::ZScore).
    GroupZScore {
        /// Members of a group: even; divides the population.
        size: usize,
    },
    /// [`Standardized`](Self::Standardized) within each group: the group-relative advantage of GRPO (Shao et al., arXiv 2402.03300). For
    /// groups with separate data or starting states: no group counts more because its scores are larger. In groups of two all weights
    /// are about ±1: [`PairSign`](Self::PairSign) with another scale.
    GroupStandardized {
        /// Members of a group: even; divides the population.
        size: usize,
    },
    /// Ranks mapped linearly to `[−½, ½]`, ties share their mean rank (Salimans et al., arXiv 1703.03864).
    CenteredRank,
    /// Utilities of natural evolution strategies, by rank `i` from the best, 1, to the worst, `N`:
    ///
    /// `u_i = max(0, ln(N/2 + 1) − ln i) / Σ_j max(0, ln(N/2 + 1) − ln j) − 1/N`,
    ///
    /// ties share the mean of their utilities (Wierstra et al., "Natural Evolution Strategies", JMLR 15, 2014, section 3.1). The best count
    /// most. The lower half is equal: a pair with both members in it has weight 0. Weights have the size `1/N`, where
    /// [`CenteredRank`](Self::CenteredRank) has 1. Raise the learning rate if steps follow the length of the estimate, as SGD's do.
    Utilities,
    /// Only the `pairs` pairs with the largest `max(f₊, f₋)` count; all others have the weight 0. If pairs tie at the border, those with
    /// lower numbers count. This is ARS with `b < N/2` (Mania, Guy and Recht, "Simple random search provides a competitive approach to
    /// reinforcement learning", NeurIPS 2018, arXiv 1803.07055, section 3.3 and Algorithm 2).
    ///
    /// The `2·pairs` scores that count are [`Standardized`](Self::Standardized) among themselves: a pair has the paper's weight `(f₊ − f₋)/σ_R`,
    /// `σ_R` the standard deviation of these scores. The scale of the estimate is still that of the whole population: ARS's mean over the pairs
    /// that count is `N/(2·pairs)` times as long.
    TopPairs {
        /// Pairs that count: from 1 to half of the population.
        pairs: usize,
    },
    /// `±½·sign(f₊ − f₋)` for the members of a pair: its folded weight is the sign. Lion and Muon also discard the size of the
    /// estimate.
    PairSign,
    /// `(f − f₀) / (std + 1e-8)` in groups of consecutive members, with the first score `f₀` and the population standard deviation of the
    /// group (HyperscaleES). The first two members of a group have weight 0: the noiser of the same name
    /// ([`BaselineSubtractionConfig`](eggroll_core::BaselineSubtractionConfig)) leaves them unperturbed. For reproduction only:
    /// `(f₊ − f₀) − (f₋ − f₀) = f₊ − f₋`, so only the division by the group's deviation remains. [`GroupStandardized`](Self::GroupStandardized) has
    /// that without baselines. A group whose scores differ only by roundings has full weight here.
    BaselineSubtraction {
        /// Members of a group: even, at least 4; divides the population.
        size: usize,
    },
    /// A function of the program.
    Custom(CustomShaping),
}

/// A fitness shaping of the program, with the name that files save. It is a pure function from the scores of all members in one
/// task to one weight for each. Two are equal if their names are. Scores are finite; members `2q` and `2q + 1` are a pair.
///
/// Files hold the name only. To continue a run, give the configuration with the function again
/// ([`with_functions_of`](crate::EvolutionStrategyConfig::with_functions_of)). Checkpoints of `eggroll-run` take the function from the
/// configuration that they are given.
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

/// The rule of that name, as in configuration files. The group size, or the number of pairs, follows a colon; hyphens count as underscores.
impl FromStr for FitnessShaping {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let text = text.replace('-', "_");
        let rule = match text.split_once(':').map(|(name, size)| (name, size.parse::<usize>())) {
            Some((name @ "top_pairs", Ok(pairs))) => json!({ name: { "pairs": pairs } }),
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
    /// - [`ConfigError::SplitPair`] if groups do not hold whole pairs,
    /// - [`ConfigError::Group`] if they do not divide the population,
    /// - [`Error::Noiser`] if they have no pair apart from their baselines,
    /// - [`ConfigError::TopPairs`] if no pair counts, or more than there are.
    pub fn validate(&self, population: usize) -> Result<(), Error> {
        match (self, self.group()) {
            (Self::Custom(custom), _) => Ok(custom.0.function("fitness shaping").map(drop)?),
            (Self::TopPairs { pairs }, _) if !(1..=population / 2).contains(pairs) => {
                Err(ConfigError::TopPairs { pairs: *pairs, population }.into())
            }
            (Self::BaselineSubtraction { .. }, Some(size)) if size < 4 || !size.is_multiple_of(2) => {
                Err(NoiserError::BaselineGroup(size).into())
            }
            (_, Some(size)) if size == 0 || !size.is_multiple_of(2) => Err(ConfigError::SplitPair(size).into()),
            (_, Some(size)) if !population.is_multiple_of(size) => {
                Err(ConfigError::Group { group: size, population }.into())
            }
            _ => Ok(()),
        }
    }

    /// Members of a group, of rules that have groups.
    pub fn group(&self) -> Option<usize> {
        match *self {
            Self::GroupZScore { size } | Self::GroupStandardized { size } | Self::BaselineSubtraction { size } => {
                Some(size)
            }
            _ => None,
        }
    }

    /// Shapes the scores of one generation. They must be finite ([`scores`](Self::scores)).
    pub fn shape(&self, scores: &[f64]) -> Vec<f64> {
        match *self {
            Self::Custom(ref custom) => custom.shape(scores),
            Self::Raw => scores.to_vec(),
            Self::Standardized => standardized(scores),
            Self::ZScore => group_z_score(scores, scores.len()),
            Self::GroupZScore { size } => group_z_score(scores, size),
            Self::SampleZScore => sample_z_score(scores),
            Self::GroupStandardized { size } => by_group(scores, size, standardized),
            Self::CenteredRank => centered_rank(scores),
            Self::Utilities => utilities(scores),
            Self::TopPairs { pairs } => top_pairs(scores, pairs, standardized),
            Self::PairSign => scores.chunks(2).flat_map(pair_sign).collect(),
            Self::BaselineSubtraction { size } => by_group(scores, size, baseline),
        }
    }

    /// The input of this rule: the scores of a fitness of `members`, all finite. NaN and −∞ become the worst score of their task, +∞ the best.
    /// Under a rule of [groups](Self::group), the worst and best of the group count, if it has a finite score.
    pub fn scores(&self, fitness: &Fitness, members: usize) -> Vec<f64> {
        let scaled = matches!(self, Self::GroupStandardized { .. });
        fitness.finite_by(members, self.group(), scaled)
    }

    /// Shapes scores of several tasks, `[tasks, members]` row after row, each task alone, and returns the mean over
    /// tasks: `[members]`.
    ///
    /// # Panics
    ///
    /// Panics if the scores are not a multiple of `members`.
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
            "{} scores do not fit whole tasks of {members} members",
            scores.len()
        );
        let mut sums = self.shape(&scores[..members]);
        for row in scores.chunks(members).skip(1) {
            sums.iter_mut().zip(self.shape(row)).for_each(|(sum, weight)| *sum += weight);
        }
        sums.iter_mut().for_each(|sum| *sum /= tasks as f64);
        sums
    }

    /// Weights of every part for [credit by part](crate::Credit#shaping), `[parts, members]`; their mean over parts counts.
    pub(crate) fn shape_parts(&self, scores: &[f64], members: usize) -> Vec<f64> {
        let parts = scores.len() / members;
        let mut shaped = match self {
            Self::Standardized if parts > 1 => standardized_parts(scores, members),
            _ => scores.chunks(members).map(|row| self.shape(row)).collect::<Vec<_>>().concat(),
        };
        shaped.iter_mut().for_each(|weight| *weight /= parts as f64);
        shaped
    }
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

fn sum_of_squares(scores: &[f64]) -> f64 {
    squares_from(scores, mean(scores))
}

fn squares_from(scores: &[f64], mean: f64) -> f64 {
    scores.iter().map(|score| (score - mean).powi(2)).sum()
}

fn by_group(scores: &[f64], size: usize, shape: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    scores.chunks(size.max(1)).flat_map(shape).collect()
}

fn group_z_score(scores: &[f64], size: usize) -> Vec<f64> {
    let scale = (sum_of_squares(scores) / scores.len() as f64 + 1e-5).sqrt();
    by_group(scores, size, |group| {
        let mean = mean(group);
        group.iter().map(|score| (score - mean) / scale).collect()
    })
}

/// `ε` of [`standardized`]: eight times the distance of neighbors in f32.
const ROUNDINGS: f64 = 8.0 * f32::EPSILON as f64;

fn standardized(scores: &[f64]) -> Vec<f64> {
    let squares: f64 = scores.iter().map(|score| score * score).sum();
    let scale = ((sum_of_squares(scores) + ROUNDINGS * ROUNDINGS * squares) / scores.len() as f64).sqrt();
    let mean = mean(scores);
    // All scores are 0, or their squares are.
    let weight = |score: &f64| if scale == 0.0 { 0.0 } else { (score - mean) / scale };
    scores.iter().map(weight).collect()
}

/// [`standardized`] with one deviation for all parts, taken within parts: a part whose scores differ more than others' has more
/// weight.
fn standardized_parts(scores: &[f64], members: usize) -> Vec<f64> {
    let squares: f64 = scores.iter().map(|score| score * score).sum();
    let moments = |part: &[f64]| {
        let mean = mean(part);
        (mean, squares_from(part, mean))
    };
    let moments: Vec<(f64, f64)> = suspended(|| scores.par_chunks(members).map(moments).collect());
    let within: f64 = moments.iter().map(|(_, squares)| squares).sum();
    let scale = ((within + ROUNDINGS * ROUNDINGS * squares) / scores.len() as f64).sqrt();
    let mut shaped = scores.to_vec();
    if scale == 0.0 {
        shaped.fill(0.0);
        return shaped;
    }
    for (part, (mean, _)) in shaped.chunks_mut(members).zip(moments) {
        part.iter_mut().for_each(|score| *score = (*score - mean) / scale);
    }
    shaped
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
