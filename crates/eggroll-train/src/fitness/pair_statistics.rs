//! Information about the noise scale from the fitness of antithetic pairs.

use super::Fitness;
use serde::{Deserialize, Serialize};

/// Share of tied pairs beyond which σ is likely to be too small.
const MOST_TIED: f64 = 0.5;
/// Roundings of the fitness that a pair should differ by.
const LEAST_ROUNDINGS: f64 = 16.0;
/// Curvature over slope beyond which σ is likely to be too large.
const MOST_CURVATURE: f64 = 1.0;

/// Slope and curvature of the fitness at the scale of σ, from the pairs of a generation.
///
/// The members of pair `q` are at `θ ± δ`. If the fitness is smooth, `f(θ ± δ) = f(θ) ± ⟨g, δ⟩ + ½·δᵀHδ + …`. Half their difference
/// is the slope, from which the estimate is made; their mean minus `f(θ)` is curvature, which cancels in it. The size of the
/// curvature is measured without `f(θ)`, by its variation between pairs: a lower bound.
///
/// # Example
///
/// ```
/// use eggroll_train::PairStatistics;
///
/// // (2, 0), (1, 3): slopes 1 and −1, means 1 and 2.
/// let pairs = PairStatistics::new(&vec![2.0, 0.0, 1.0, 3.0].into());
/// assert_eq!((pairs.slope, pairs.curvature, pairs.tied), (1.0, 0.5, 0.0));
/// assert!(pairs.hints(0.02).is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairStatistics {
    /// Share of pairs of equal fitness, from 0 to 1.
    pub tied: f64,
    /// Root mean square of `½(f₊ − f₋)`.
    pub slope: f64,
    /// Standard deviation of `½(f₊ + f₋)` over the pairs, of every task from its own mean.
    pub curvature: f64,
    /// Mean distance of a pair's fitness values in units of the fitness's rounding to f32, `2·slope/(ε·mean |f|)`. Infinite if all
    /// fitness is 0, and for integers, which are exact.
    pub roundings: f64,
}

impl PairStatistics {
    /// The statistics of a generation's fitness; values that are not finite count as [`Fitness::finite`] has it.
    pub fn new(fitness: &Fitness) -> Self {
        let (scores, _) = fitness.finite();
        let members = scores.len() / fitness.tasks();
        let pairs = || scores.chunks_exact(2);
        let mean = |sum: f64| sum / pairs().count().max(1) as f64;
        let slope = mean(pairs().map(|pair| (0.5 * (pair[0] - pair[1])).powi(2)).sum()).sqrt();
        let middle = |pair: &[f64]| 0.5 * (pair[0] + pair[1]);
        // Tasks differ in their means without any noise.
        let of_task = |scores: &[f64]| {
            let count = (scores.len() / 2).max(1) as f64;
            let center = scores.chunks_exact(2).map(middle).sum::<f64>() / count;
            scores.chunks_exact(2).map(|pair| (middle(pair) - center).powi(2)).sum::<f64>()
        };
        let curvature = mean(scores.chunks(members.max(2)).map(of_task).sum()).sqrt();
        let magnitude = mean(pairs().map(|pair| 0.5 * (pair[0].abs() + pair[1].abs())).sum());
        let rounding = if fitness.integers().is_some() { 0.0 } else { f64::from(f32::EPSILON) * magnitude };
        let roundings = if rounding > 0.0 { 2.0 * slope / rounding } else { f64::INFINITY };
        Self { tied: fitness.tied_pairs(), slope, curvature, roundings }
    }

    /// Curvature over slope; 0 if both are.
    pub fn curvature_to_slope(&self) -> f64 {
        if self.curvature == 0.0 { 0.0 } else { self.curvature / self.slope }
    }

    /// Advice if `sigma` looks too small (more than half of the pairs tied, or pairs apart by less than 16 roundings) or too
    /// large (curvature above slope). Each hint has the numbers and what to do.
    ///
    /// The last is not a sign of a large σ where curvature is expected. Pairs that are evaluated on different data differ in their means
    /// for that reason alone. On a plateau of a return in reinforcement learning, slopes are small at every σ.
    pub fn hints(&self, sigma: f64) -> Vec<String> {
        let (tied, roundings, ratio) = (100.0 * self.tied, self.roundings, self.curvature_to_slope());
        let checks = [
            (
                self.tied > MOST_TIED,
                format!(
                    "sigma may be too small: at {sigma}, {tied:.1} % of the pairs have equal fitness. Raise it, or \
                     take a score with more distinct values"
                ),
            ),
            (
                self.tied <= MOST_TIED && roundings < LEAST_ROUNDINGS,
                format!(
                    "sigma may be too small: at {sigma}, the members of a pair differ by {roundings:.1} roundings of \
                     f32. Raise it, or subtract from the fitness what all members have in common"
                ),
            ),
            (
                self.slope > 0.0 && ratio > MOST_CURVATURE,
                format!(
                    "sigma may be too large: at {sigma}, curvature moves the fitness {ratio:.1} times as far as \
                     slope. Lower it, unless groups of members have separate data or the return is on a plateau"
                ),
            ),
        ];
        checks.into_iter().filter(|(found, _)| *found).map(|(_, hint)| hint).collect()
    }
}
