//! How much of an estimate is signal.

use super::gradient_cosine;
use burn::module::Module;
use burn::optim::GradientsParams;
use serde::{Deserialize, Serialize};

/// The correlation of two independent estimates of a gradient, each from half of the pairs.
///
/// With `ĝ₁ = g + n₁`, `ĝ₂ = g + n₂` and independent noise of mean 0 and the same length, `E⟨ĝ₁, ĝ₂⟩ = |g|²` and
/// `E|ĝᵢ|² = |g|² + |n|²`. The cosine of the halves is thus `ρ ≈ |g|²/(|g|² + |n|²)`. The estimate from all pairs has half the noise: its
/// signal-to-noise ratio is `|g|²/(½|n|²) = 2ρ/(1 − ρ)`. Its cosine with the true gradient is `√(2ρ/(1 + ρ))` (the Spearman–Brown
/// formula); no autodiff is needed.
///
/// The gradient is that of this generation's data; the difference from other data is not measured. In `n` dimensions ρ itself has
/// an error of about `1/√n`.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::{EvolutionStrategyConfig, SplitHalf};
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let model = LinearConfig::new(2, 1).init(&device);
/// let x = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device);
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(4096);
/// let strategy = config.try_init(&model)?;
///
/// let population = strategy.ask();
/// let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
/// let halves = strategy.gradient_halves(&model, &population, &fitness)?.expect("fitness differs");
/// let split = SplitHalf::new(&model, &halves).expect("gradients that are not 0");
/// assert!(split.correlation > 0.98 && split.cosine() > 0.99);
/// # Ok(())
/// # }
/// ```
///
/// # References
///
/// Spearman, "Correlation calculated from faulty data", British Journal of Psychology 3 (1910).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitHalf {
    /// Cosine of the two estimates, `ρ`.
    pub correlation: f64,
}

impl SplitHalf {
    /// Compares the [halves](crate::EvolutionStrategy::gradient_halves) of an estimate, over all float parameters; `None` if there are
    /// none or a half is 0. Reads both to the host.
    pub fn new<M: Module>(model: &M, [a, b]: &[GradientsParams; 2]) -> Option<Self> {
        gradient_cosine(model, a, b).map(|correlation| Self { correlation })
    }

    /// Signal-to-noise ratio of the estimate from all pairs, `2ρ/(1 − ρ)`; 0 without a positive correlation.
    pub fn signal_to_noise(&self) -> f64 {
        let correlation = self.correlation.max(0.0);
        2.0 * correlation / (1.0 - correlation)
    }

    /// Expected cosine between the estimate from all pairs and the true gradient, `√(2ρ/(1 + ρ))`; 0 without a positive
    /// correlation.
    pub fn cosine(&self) -> f64 {
        let correlation = self.correlation.max(0.0);
        (2.0 * correlation / (1.0 + correlation)).sqrt()
    }
}
