//! The report of a generation.

use crate::fitness::Fitness;
use eggroll_core::messages::shown;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The outcome of a generation.
///
/// Mean, best and worst are taken over the finite fitness values: NaN if there is none. In JSON, which has no NaN, they are `null`,
/// read back as NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerationReport {
    /// The generation, from 0.
    pub generation: u64,
    /// Mean of the finite fitness values.
    #[serde(deserialize_with = "or_nan")]
    pub fitness_mean: f64,
    /// Best of the finite fitness values.
    #[serde(deserialize_with = "or_nan")]
    pub fitness_best: f64,
    /// Worst of the finite fitness values.
    #[serde(deserialize_with = "or_nan")]
    pub fitness_worst: f64,
    /// Fitness values that were NaN or infinite, ranked last (or first, for +∞).
    pub non_finite: usize,
    /// Noise scale.
    pub sigma: f64,
    /// Learning rate.
    pub learning_rate: f64,
    /// Whether the optimizer made a step: not if all fitness was equal.
    pub stepped: bool,
}

/// In one line, as `generation 12: fitness 0.4120 (0.1000 to 0.6550), sigma 0.02, rate 0.002`: mean, worst and best of the twelfth, whose
/// [`generation`](GenerationReport::generation) is 11.
impl fmt::Display for GenerationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(4);
        write!(
            f,
            "generation {}: fitness {:.digits$} ({:.digits$} to {:.digits$}), sigma {}, rate {}",
            self.generation + 1,
            shown(self.fitness_mean, digits),
            shown(self.fitness_worst, digits),
            shown(self.fitness_best, digits),
            Rounded(self.sigma),
            Rounded(self.learning_rate)
        )?;
        if self.non_finite > 0 {
            write!(f, ", {} not finite", self.non_finite)?;
        }
        if !self.stepped {
            write!(f, ", no step: all fitness is equal")?;
        }
        Ok(())
    }
}

/// A number with four significant digits.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded: f64 = format!("{:.3e}", self.0).parse().unwrap_or(self.0);
        write!(f, "{rounded}")
    }
}

impl GenerationReport {
    pub(crate) fn new(generation: u64, fitness: &Fitness, sigma: f64, learning_rate: f64, stepped: bool) -> Self {
        let (mut count, mut sum, mut best, mut worst) = (0, 0.0, f64::NAN, f64::NAN);
        for score in fitness.finite_scores() {
            (count, sum, best, worst) = (count + 1, sum + score, score.max(best), score.min(worst));
        }
        Self {
            generation,
            fitness_mean: sum / count as f64,
            fitness_best: best,
            fitness_worst: worst,
            non_finite: fitness.values().len() - count,
            sigma,
            learning_rate,
            stepped,
        }
    }
}

/// A number, or NaN where JSON has `null`.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::deserialize(deserializer).map(|number| number.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(fitness: Vec<f32>) -> GenerationReport {
        GenerationReport::new(3, &fitness.into(), 0.5, 0.25, false)
    }

    #[test]
    fn nothing_finite_is_nan() {
        let all = |report: &GenerationReport| [report.fitness_mean, report.fitness_best, report.fitness_worst];
        for fitness in [vec![f32::NAN; 4], vec![f32::INFINITY, f32::NEG_INFINITY]] {
            let report = report(fitness.clone());
            assert!(all(&report).into_iter().all(f64::is_nan) && report.non_finite == fitness.len(), "{report:?}");
            let json = serde_json::to_string(&report).expect("writes");
            assert!(json.contains(r#""fitness_mean":null,"fitness_best":null,"fitness_worst":null"#), "{json}");
            let read: GenerationReport = serde_json::from_str(&json).expect("reads");
            assert!(all(&read).into_iter().all(f64::is_nan) && read.generation == 3);
        }
    }

    #[test]
    fn as_a_line() {
        let line = report(vec![1.0, f32::NAN, -3.0]).to_string();
        let expected = "generation 4: fitness -1.0000 (-3.0000 to 1.0000), sigma 0.5, rate 0.25, 1 not finite, \
                        no step: all fitness is equal";
        assert_eq!(line, expected);
        let line = report(vec![-0.0, -0.000_01]).to_string();
        assert!(line.starts_with("generation 4: fitness 0.0000 (0.0000 to 0.0000), "), "{line}");
    }

    #[test]
    fn what_is_not_finite_has_no_part() {
        let report = report(vec![1.0, f32::NAN, -3.0, f32::INFINITY, f32::NEG_INFINITY, -1.0]);
        assert_eq!((report.fitness_mean, report.fitness_best, report.fitness_worst), (-1.0, 1.0, -3.0));
        assert_eq!(report.non_finite, 3);
    }
}
