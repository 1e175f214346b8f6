//! Muon on the votes of integer parameters.

use super::integer_adam_w::IntegerAdamWConfig;
use super::integers::Integers;
use super::muon::{MuonAdamW, MuonAdamWConfig};
use burn::config::Config;
use burn::optim::ModuleOptimizer;
use burn::optim::momentum::MomentumConfig;

/// Settings of [`IntegerAdamWConfig`]'s accumulators under Muon: matrices add up Muon's orthogonal steps, scaled to the length of AdamW's, and vectors
/// AdamW's steps.
///
/// For matrices that learn [by part](crate::Credit#parts), whose votes are precise enough for an orthogonal step. A learning rate of 1 moves a weight
/// by about 0.2 in a generation. Its products are of floats: other instruction sets and devices may round them differently, and weights then differ.
///
/// # Example
///
/// ```
/// use eggroll_core::QEggrollConfig;
/// use eggroll_train::{EvolutionStrategyConfig, IntegerMuonConfig};
///
/// let config = EvolutionStrategyConfig::new(QEggrollConfig::new(), IntegerMuonConfig::new()).with_learning_rate(1.0);
/// ```
///
/// # References
///
/// As [`MuonAdamWConfig`].
#[derive(Config, Debug, PartialEq)]
pub struct IntegerMuonConfig {
    /// Of matrices, from 0 to below 1; in Nesterov's form.
    #[config(default = 0.95)]
    pub momentum: f64,
    /// λ of matrices, not below 0.
    #[config(default = 0.0)]
    pub weight_decay: f64,
}

impl IntegerMuonConfig {
    /// The optimizer of parameters whose values are integers from −127 to 127, and whose gradients are negated votes.
    pub fn init(&self) -> ModuleOptimizer {
        let momentum = MomentumConfig { momentum: self.momentum, dampening: 0.0, nesterov: true };
        let matrices = MuonAdamWConfig::new().matrices.with_momentum(momentum).build();
        let optimizer = MuonAdamW { matrices, others: IntegerAdamWConfig::new().steps() };
        ModuleOptimizer::from(Integers { optimizer, weight_decay: self.weight_decay })
    }
}
