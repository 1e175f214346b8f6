//! Decay towards the initial parameters of a run.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets the decay of trained float parameters towards `θ₀`, the parameters of the model given to [`try_init`](Self::try_init),
    /// or of [another model](crate::EvolutionStrategy::try_with_anchor). It follows the optimizer's step and is decoupled from it,
    /// as in AdamW:
    ///
    /// `θ ← θ − η·λ·(θ − θ₀)`, `η` the learning rate of the generation.
    ///
    /// Weight decay pulls towards 0, but a pretrained model need not be close to 0; this pulls back to the pretrained values. Under SGD and a
    /// constant gradient `g` the parameters come to rest at `θ₀ − (1 − η·λ)·g/λ`. Useful values of `η·λ` are from 0 to 1: at 1 each step ends
    /// in `θ₀`. A generation without a step, for example one with equal fitness, has no decay. [`advance`](crate::EvolutionStrategy::advance)
    /// does not decay either.
    ///
    /// The strategy holds one copy of `θ₀`, in the types of the parameters; the model shares it until its first step. `None` and 0 hold
    /// nothing. A record of the strategy holds only the digest of `θ₀`: to continue, give the same model again.
    ///
    /// `try_init` refuses a λ that is negative or does not fit f32, and trained integer parameters.
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
