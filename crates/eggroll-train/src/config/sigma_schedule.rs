//! The noise scale by generation.

use crate::error::ConfigError;
use crate::named::Named;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::sync::Arc;

/// Noise scale σ by generation: a pure function without state.
///
/// It is computed in f64 with additions, multiplications and divisions only, whose results IEEE 754 defines. So replicas on different
/// systems have the same σ, bit for bit. Powers and cosines of system libraries differ in the last bit. (Burn's learning-rate schedules
/// use the library, and a [custom](CustomSigma) schedule may.)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SigmaSchedule {
    /// The same σ always.
    Constant(f64),
    /// `max(σ·decayᵍ, last)`
    Exponential {
        /// σ of generation 0.
        initial: f64,
        /// Factor for each generation, in (0, 1].
        decay: f64,
        /// The floor, if there is one: σ does not fall below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<f64>,
    },
    /// From `initial` to `last` along half a cosine over `generations`, then `last`.
    Cosine {
        /// σ of generation 0.
        initial: f64,
        /// σ from generation `generations` on.
        last: f64,
        /// Length of the schedule.
        generations: u64,
    },
    /// A function of the program.
    Custom(CustomSigma),
}

/// A sigma schedule of the program: a pure function of the generation, with the name that files save. Two are equal if their names
/// are.
///
/// Files hold the name only. To continue a run, give the configuration with the function again
/// ([`with_functions_of`](crate::EvolutionStrategyConfig::with_functions_of)). Checkpoints of `eggroll-run` take the function from the
/// configuration that they are given.
///
/// # Example
///
/// ```
/// use eggroll_train::{CustomSigma, SigmaSchedule};
///
/// let steps = CustomSigma::new("halved every 100", |generation| 0.1 * 0.5f64.powi((generation / 100) as i32));
/// assert_eq!(SigmaSchedule::from(steps).at(250), 0.025);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CustomSigma(Named<dyn Fn(u64) -> f64 + Send + Sync>);

impl CustomSigma {
    /// Takes a function from generations to noise scales.
    pub fn new(name: impl Into<String>, sigma: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Self {
        Self(Named::new(name, Arc::new(sigma)))
    }
}

impl From<CustomSigma> for SigmaSchedule {
    fn from(custom: CustomSigma) -> Self {
        Self::Custom(custom)
    }
}

impl SigmaSchedule {
    /// σ of a generation.
    ///
    /// # Panics
    ///
    /// Panics if this is a custom schedule that was read from a file, which holds no function.
    pub fn at(&self, generation: u64) -> f64 {
        match *self {
            Self::Custom(ref custom) => match custom.0.function("sigma schedule") {
                Ok(sigma) => sigma(generation),
                Err(error) => panic!("{error}"),
            },
            Self::Constant(sigma) => sigma,
            Self::Exponential { initial, decay, last } => {
                let sigma = initial * power(decay, generation);
                last.map_or(sigma, |last| sigma.max(last))
            }
            Self::Cosine { last, generations, .. } if generation >= generations => last,
            Self::Cosine { initial, last, generations } => {
                let share = half_cosine(generation as f64 / generations as f64);
                share * initial + (1.0 - share) * last
            }
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let check = |sigma: f64| if sigma > 0.0 && sigma.is_finite() { Ok(()) } else { Err(ConfigError::Sigma(sigma)) };
        match *self {
            Self::Custom(ref custom) => custom.0.function("sigma schedule").and_then(|sigma| check(sigma(0))),
            Self::Constant(sigma) => check(sigma),
            Self::Exponential { initial, decay, last } => {
                check(initial).and(last.map_or(Ok(()), check))?;
                if decay > 0.0 && decay <= 1.0 { Ok(()) } else { Err(ConfigError::SigmaDecay(decay)) }
            }
            Self::Cosine { initial, last, .. } => check(initial).and(check(last)),
        }
    }
}

impl From<f64> for SigmaSchedule {
    fn from(sigma: f64) -> Self {
        Self::Constant(sigma)
    }
}

/// `baseⁿ` by repeated squaring: a relative error of at most about `n` roundings.
fn power(base: f64, mut n: u64) -> f64 {
    let (mut power, mut square) = (1.0, base);
    while n > 0 {
        if n % 2 == 1 {
            power *= square;
        }
        square *= square;
        n /= 2;
    }
    power
}

/// `½·(1 + cos π·p)` for `p` from 0 to 1, exact at both ends: the Taylor series of the first quarter, mirrored. The first omitted term
/// is `(π/2)²⁴/24!`, less than a rounding.
fn half_cosine(progress: f64) -> f64 {
    let cosine = |x: f64| (1..=11).rev().fold(1.0, |rest, k| 1.0 - x * x / f64::from((2 * k - 1) * (2 * k)) * rest);
    match progress <= 0.5 {
        true => 0.5 + 0.5 * cosine(PI * progress),
        false => 0.5 - 0.5 * cosine(PI * (1.0 - progress)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits from another program of the same formulas; the system's library agrees within its accuracy.
    #[test]
    fn schedules_have_their_bits() {
        let exponential = SigmaSchedule::Exponential { initial: 0.1, decay: 0.99, last: None };
        let cosine = SigmaSchedule::Cosine { initial: 0.1, last: 0.01, generations: 1000 };
        let of_exponential = [
            (0, 0x3fb9_9999_9999_999a),
            (1, 0x3fb9_5810_624d_d2f2),
            (7, 0x3fb7_dc62_2ab3_14f3),
            (1000, 0x3ed2_1b7a_367c_b3e2),
            (65535, 0x0455_d68a_3fb0_5bc9),
        ];
        let of_cosine = [
            (0, 0x3fb9_9999_9999_999a),
            (1, 0x3fb9_9995_dfd5_8af6),
            (250, 0x3fb6_39d2_9fc7_6773),
            (500, 0x3fac_28f5_c28f_5c29),
            (777, 0x3f95_17d8_cc68_1af5),
            (999, 0x3f84_7aff_15ce_899d),
            (1000, 0x3f84_7ae1_47ae_147b),
            (4000, 0x3f84_7ae1_47ae_147b),
        ];
        for (schedule, expected) in [(&exponential, &of_exponential[..]), (&cosine, &of_cosine[..])] {
            for (generation, bits) in expected {
                let found = schedule.at(*generation);
                assert_eq!(found.to_bits(), *bits, "{schedule:?}, generation {generation}: {found:e}");
            }
        }
        for generation in 0..1000 {
            let g = generation as f64;
            let close =
                |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{g}: {found} {expected}");
            close(exponential.at(generation), 0.1 * 0.99f64.powf(g));
            close(cosine.at(generation), 0.01 + 0.045 * (1.0 + (PI * g / 1000.0).cos()));
            assert!(cosine.at(generation + 1) < cosine.at(generation), "{generation}");
        }
        let one = SigmaSchedule::Cosine { initial: 0.1, last: 0.01, generations: 0 };
        assert_eq!((one.at(0), cosine.at(u64::MAX)), (0.01, 0.01));
    }

    #[test]
    fn an_exponential_may_have_a_floor() {
        let floor = SigmaSchedule::Exponential { initial: 0.1, decay: 0.5, last: Some(0.03) };
        assert_eq!([0, 1, 2, u64::MAX].map(|generation| floor.at(generation)), [0.1, 0.05, 0.03, 0.03]);
        let text = serde_json::to_string(&floor).expect("writes");
        assert_eq!(text, r#"{"exponential":{"initial":0.1,"decay":0.5,"last":0.03}}"#);
        let without: SigmaSchedule =
            serde_json::from_str(r#"{"exponential":{"initial":0.1,"decay":0.5}}"#).expect("reads");
        assert_eq!(without, SigmaSchedule::Exponential { initial: 0.1, decay: 0.5, last: None });
        assert_eq!(without.at(2000), 0.0, "canary: nothing is left without");
        let refused = SigmaSchedule::Exponential { initial: 0.1, decay: 0.5, last: Some(0.0) }.validate();
        assert_eq!(refused, Err(ConfigError::Sigma(0.0)));
    }
}
