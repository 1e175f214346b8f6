//! The report of a generation.

use crate::fitness::Fitness;
use serde::{Deserialize, Serialize};

/// The outcome of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerationReport {
    /// The generation, from 0.
    pub generation: u64,
    /// Mean of the finite fitness values.
    pub fitness_mean: f64,
    /// Best fitness.
    pub fitness_best: f64,
    /// Worst fitness.
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

impl GenerationReport {
    pub(crate) fn new(generation: u64, fitness: &Fitness, sigma: f64, learning_rate: f64, stepped: bool) -> Self {
        let (scores, non_finite) = fitness.finite();
        Self {
            generation,
            fitness_mean: scores.iter().sum::<f64>() / scores.len() as f64,
            fitness_best: scores.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            fitness_worst: scores.iter().copied().fold(f64::INFINITY, f64::min),
            non_finite,
            sigma,
            learning_rate,
            stepped,
        }
    }
}
