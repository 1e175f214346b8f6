//! AdamW on the votes of integer parameters.

use super::integers::Integers;
use crate::error::ConfigError;
use burn::config::Config;
use burn::optim::{AdamW, AdamWConfig, ModuleOptimizer};

/// Settings of the hybrid for Q-EGGROLL. Q-EGGROLL moves weights by one where votes exceed a threshold; here AdamW adds up votes over
/// generations instead, with the strategy's learning rate.
///
/// With the votes `Z` of a weight `w` ([`sum_votes`](eggroll_core::ops::integer::sum_votes)), `g = −Z`:
///
/// `m ← β₁·m + (1 − β₁)·g`, `v ← β₂·v + (1 − β₂)·g²`, `a ← a − α·(m̂/(√v̂ + ε) + λ·w)`
///
/// with bias-corrected moments, and no decay (λ = 0) of vectors, as gains begin at 16, not at 0. Where `|a| ≥ ½` the weight moves by one in the
/// direction of `a`, saturated at ±127, and that unit is subtracted from `a`. So the weight is `w + a` to the nearest. A learning rate of 0.1 moves a
/// weight by one in ten generations of unanimous votes. No weight moves by more than one in a generation: the remainder of a larger step stays in `a`.
///
/// Moments and accumulators take twelve bytes for each one-byte weight; they are part of a checkpoint. Float operations round:
/// unlike the update by threshold, results may differ from one backend to another.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::QEggrollConfig;
/// use eggroll_core::ops::integer::{Rounding, log_likelihood};
/// use eggroll_nn::integer::LinearConfig;
/// use eggroll_train::{EvolutionStrategyConfig, IntegerAdamWConfig};
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut model = LinearConfig::new(16, 4).init(&device);
/// let x = Tensor::<2, Int>::full([1, 16], 16, (&device, DType::I8));
/// let config = EvolutionStrategyConfig::new(QEggrollConfig::new(), IntegerAdamWConfig::new()).with_learning_rate(0.5);
/// let mut strategy = config.try_init(&model)?;
/// for _ in 0..5 {
///     let population = strategy.ask();
///     let fitness = population.evaluate(|members| {
///         let logits = model.forward(members.repeat(x.clone()));
///         let target = Tensor::<1, Int>::full([members.count()], 2, &device);
///         log_likelihood(logits, target, members.count(), Rounding::Floor)
///     });
///     strategy.tell(&mut model, population, fitness)?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # References
///
/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101, Algorithm 2.
#[derive(Config, Debug, PartialEq)]
pub struct IntegerAdamWConfig {
    /// β₁, from 0 to below 1.
    #[config(default = 0.9)]
    pub beta_1: f32,
    /// β₂, from 0 to below 1.
    #[config(default = 0.95)]
    pub beta_2: f32,
    /// ε, above 0.
    #[config(default = 1e-8)]
    pub epsilon: f32,
    /// λ of matrices, not below 0.
    #[config(default = 0.0)]
    pub weight_decay: f64,
}

impl IntegerAdamWConfig {
    /// The optimizer of parameters whose values are integers from −127 to 127, and whose gradients are negated votes.
    pub fn init(&self) -> ModuleOptimizer {
        ModuleOptimizer::from(Integers { optimizer: self.steps(), weight_decay: self.weight_decay })
    }

    /// The steps that accumulators add up.
    pub(super) fn steps(&self) -> AdamW {
        let adam = AdamWConfig::new().with_beta_1(self.beta_1).with_beta_2(self.beta_2).with_epsilon(self.epsilon);
        adam.with_weight_decay(0.0).build()
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let betas = [self.beta_1, self.beta_2].iter().all(|beta| (0.0..1.0).contains(beta));
        let others = self.epsilon > 0.0 && self.weight_decay >= 0.0 && self.weight_decay.is_finite();
        if betas && others { Ok(()) } else { Err(ConfigError::IntegerAdamW(self.to_string())) }
    }
}

#[cfg(test)]
mod tests;
