//! Decay towards the parameters that a run begins with.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets the decay of trained float parameters towards `θ₀`, those of the model that [`try_init`](Self::try_init) is given, or of
    /// [another](crate::EvolutionStrategy::try_with_anchor). It follows the optimizer's step and is decoupled from it, as in AdamW:
    ///
    /// `θ ← θ − η·λ·(θ − θ₀)`, `η` the learning rate of the generation.
    ///
    /// Weight decay pulls towards 0, which a pretrained model has no reason to be close to; this pulls back to what was pretrained. Under SGD
    /// and a constant gradient `g` the parameters come to rest at `θ₀ − (1 − η·λ)·g/λ`. `η·λ` from 0 to 1 is of use: at 1 each step ends in
    /// `θ₀`. A generation without a step, as of equal fitness, has no decay. [`advance`](crate::EvolutionStrategy::advance) completes a step of
    /// your own, which it does not decay.
    ///
    /// The strategy holds the tensors of `θ₀`, which the model shares until its first step: one copy of the trained float parameters, in their
    /// type. `None` and 0 hold nothing. A record of the strategy has the digest of `θ₀` only, so that whoever continues gives the same
    /// model again.
    ///
    /// `try_init` refuses a λ that is negative or that f32 cannot hold, and trained integer parameters.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::AdamConfig;
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_anchor_decay(0.1);
    /// assert_eq!(config.anchor_decay, Some(0.1));
    /// ```
    ///
    /// # References
    ///
    /// - Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, arXiv 1711.05101.
    /// - Li, Grandvalet and Davoine, "Explicit Inductive Bias for Transfer Learning with Convolutional Networks", ICML 2018, arXiv
    ///   1802.01483: decay towards the pretrained parameters (L2-SP).
    pub fn with_anchor_decay(mut self, decay: impl Into<Option<f64>>) -> Self {
        self.anchor_decay = decay.into();
        self
    }
}
