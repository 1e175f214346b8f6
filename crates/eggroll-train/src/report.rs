//! What one generation came to.

use crate::fitness::Fitness;
use serde::{Deserialize, Serialize};

/// What one generation came to.
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
    /// What the fitness says; the strategy adds the rest.
    pub(crate) fn of_fitness(generation: u64, fitness: &Fitness) -> Self {
        let (scores, non_finite) = fitness.finite();
        Self {
            generation,
            fitness_mean: scores.iter().sum::<f64>() / scores.len() as f64,
            fitness_best: scores.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            fitness_worst: scores.iter().copied().fold(f64::INFINITY, f64::min),
            non_finite,
            sigma: 0.0,
            learning_rate: 0.0,
            stepped: false,
        }
    }
}
