//! Noise scales that follow what the population shows.

use super::{EvolutionStrategyConfig, is_sigma};
use crate::error::ConfigError;
use crate::fitness::PairStatistics;
use serde::{Deserialize, Serialize};

/// `2^(1/8)`, by which σ grows.
const GROWTH: f64 = 1.090_507_732_665_257_7;
/// `2^(−1/8)`, by which σ falls.
const DECLINE: f64 = 0.917_004_043_204_671_2;
/// Share of tied pairs beyond which σ grows.
const MOST_TIED: f64 = 0.5;
/// Roundings of the fitness below which σ grows.
const LEAST_ROUNDINGS: f64 = 64.0;

/// How σ follows the [curvature](PairStatistics) that a population sees at its scale.
///
/// With `d_q = ½(f₊ − f₋)` and `c_q = ½(f₊ + f₋)` of pair `q`, the ratio
///
/// `ρ = sd(c) / rms(d)`
///
/// is proportional to σ where the fitness is smooth: the curvature that an estimate is blind to, over the slope that it is made of. After every `every`
/// generations σ takes a step of an eighth of an octave, by the fitness of the last of them:
///
/// | of the generation | σ |
/// |---|---|
/// | more than half of the pairs tied, or pairs apart by less than 64 roundings of f32 | `·2^(1/8)` |
/// | else `ρ > most_curvature` | `·2^(−1/8)` |
/// | else `ρ < least_curvature` | `·2^(1/8)` |
/// | else | stays |
///
/// and stays between `lowest` and `highest` of the [schedule](crate::SigmaSchedule). The fitness of a member is its sum over tasks; groups of a
/// shaping rule by groups are measured from their own means.
///
/// A learning rate [relative to sigma](crate::RateScale) is relative to the schedule's σ, not to the adapted one: steps do not shrink
/// where the noise does.
///
/// σ of the next generation is a [running setting](crate::RunningSettings), of f64 operations whose results IEEE 754 defines: reports and records have
/// it, checkpoints continue with it, and replay makes it again, bit for bit. [`set_sigma`](crate::EvolutionStrategy::set_sigma) sets where it goes on from.
///
/// Off unless asked for ([`with_sigma_adaptation`](EvolutionStrategyConfig::with_sigma_adaptation)); docs/benchmarks.md has what it does to control tasks and to images.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SigmaAdaptation {
    /// Generations between two steps.
    pub every: u64,
    /// Least σ, as a factor of the schedule's; in (0, 1].
    pub lowest: f64,
    /// Largest σ, as a factor of the schedule's; at least 1.
    pub highest: f64,
    /// `ρ` below which σ grows.
    pub least_curvature: f64,
    /// `ρ` above which σ falls.
    pub most_curvature: f64,
}

/// A step every 4 generations between 1/16 and 1 of the schedule, to a curvature of 0.05 to 0.5 of the slope.
impl Default for SigmaAdaptation {
    fn default() -> Self {
        Self { every: 4, lowest: 1.0 / 16.0, highest: 1.0, least_curvature: 0.05, most_curvature: 0.5 }
    }
}

impl EvolutionStrategyConfig {
    /// Lets σ follow the curvature that the population sees, or, with `None`, the schedule alone.
    ///
    /// [`try_init`](Self::try_init) refuses it for trained integer parameters, whose noise has no σ, and bounds that are none.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::{EvolutionStrategyConfig, SigmaAdaptation};
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = LinearConfig::new(2, 1).init(&device);
    /// let x = Tensor::<2>::ones([1, 2], &device);
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
    ///     .with_learning_rate(0.001)
    ///     .with_sigma(10.0) // much too large for this loss
    ///     .with_sigma_adaptation(SigmaAdaptation::default());
    /// let mut strategy = config.with_population_size(64).try_init(&model)?;
    /// for _ in 0..40 {
    ///     let population = strategy.ask();
    ///     let fitness = population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square()));
    ///     strategy.tell(&mut model, population, fitness)?;
    /// }
    /// assert!(strategy.sigma() < 5.0, "{}", strategy.sigma());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_sigma_adaptation(mut self, adaptation: impl Into<Option<SigmaAdaptation>>) -> Self {
        self.sigma_adaptation = adaptation.into();
        self
    }
}

impl SigmaAdaptation {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let refuse = |field: &'static str, value: f64, expected: &'static str| {
            Err(ConfigError::SigmaAdaptation { field, value, expected })
        };
        if self.every == 0 {
            return refuse("every", 0.0, "at least 1 generation");
        }
        if !(self.lowest > 0.0 && self.lowest <= 1.0) {
            return refuse("lowest", self.lowest, "above 0 and at most 1");
        }
        if !(self.highest >= 1.0 && self.highest.is_finite()) {
            return refuse("highest", self.highest, "finite and at least 1");
        }
        if !(self.least_curvature >= 0.0 && self.least_curvature.is_finite()) {
            return refuse("least_curvature", self.least_curvature, "finite and not negative");
        }
        if !(self.most_curvature > self.least_curvature && self.most_curvature.is_finite()) {
            return refuse("most_curvature", self.most_curvature, "finite and above least_curvature");
        }
        Ok(())
    }

    /// σ after a generation that had `sigma`, where the schedule has `scheduled`: stays where that is none, which the next generation is refused for.
    pub(crate) fn next(&self, sigma: f64, scheduled: f64, pairs: &PairStatistics) -> f64 {
        let too_small = pairs.tied > MOST_TIED || pairs.roundings < LEAST_ROUNDINGS;
        let ratio = pairs.curvature_to_slope();
        let factor = match () {
            () if too_small => GROWTH,
            () if ratio > self.most_curvature => DECLINE,
            () if ratio < self.least_curvature => GROWTH,
            () => 1.0,
        };
        if !is_sigma(scheduled) {
            return sigma;
        }
        (sigma * factor).clamp(self.lowest * scheduled, self.highest * scheduled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(tied: f64, ratio: f64, roundings: f64) -> PairStatistics {
        PairStatistics { tied, slope: 2.0, curvature: 2.0 * ratio, roundings }
    }

    #[test]
    fn follows_the_table() {
        let rule = SigmaAdaptation { highest: 4.0, ..SigmaAdaptation::default() };
        let step = |tied, ratio, roundings| rule.next(1.0, 1.0, &statistics(tied, ratio, roundings));
        assert_eq!(step(0.0, 0.2, 1e6), 1.0);
        assert_eq!(step(0.0, 0.6, 1e6), DECLINE);
        assert_eq!(step(0.0, 0.01, 1e6), GROWTH);
        assert_eq!(step(0.6, 3.0, 1e6), GROWTH, "ties come first");
        assert_eq!(step(0.0, 3.0, 63.0), GROWTH, "roundings come first");
        assert_eq!(step(0.5, 0.6, f64::INFINITY), DECLINE, "half of the pairs may be tied");
        let octave = (0..8).fold(1.0, |sigma, _| rule.next(sigma, 1.0, &statistics(0.0, 0.6, 1e6)));
        assert!((octave - 0.5f64).abs() < 1e-15 && (GROWTH * DECLINE - 1.0).abs() < 1e-15);
    }

    #[test]
    fn stays_within_its_bounds() {
        let rule = SigmaAdaptation { lowest: 0.25, highest: 2.0, ..SigmaAdaptation::default() };
        let [mut low, mut high] = [8.0; 2];
        for _ in 0..100 {
            low = rule.next(low, 8.0, &statistics(0.0, 0.6, 1e6));
            high = rule.next(high, 8.0, &statistics(0.0, 0.0, 1e6));
        }
        assert_eq!((low, high), (2.0, 16.0));
        assert_eq!(rule.next(low, 1.0, &statistics(0.0, 0.2, 1e6)), 2.0, "the schedule has fallen");
    }
}
