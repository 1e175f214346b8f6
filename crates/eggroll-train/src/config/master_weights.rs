//! f32 copies of half-precision parameters.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets whether the strategy keeps f32 copies of trained half-precision parameters (f16 and bf16), as in mixed-precision training:
    ///
    /// `m ← step(m, G)`, `θ ← round(m)`, with the copy `m`, the estimate `G` and the optimizer's moments in f32.
    ///
    /// Steps and moments are computed in f32 without copies too, from `θ`. But bf16 has 8 significant bits: a step of less than half the distance to the
    /// next number is lost. With copies, small steps add up.
    /// Evaluation perturbs `θ` in both cases. Weight decay and [anchor decay](Self::with_anchor_decay) act on `m`.
    ///
    /// Parameters of other types are unaffected, bit for bit. The copies take 4 bytes for each value.
    /// [Held](Self::with_noise_source) noise has the type of the parameter: the estimate is then made in that type and cast.
    ///
    /// # Other changes of the model
    ///
    /// A step begins with `m` where it rounds to `θ`, and with `θ` elsewhere. So a value that the program has changed between two generations becomes
    /// the new `m`. The comparison runs on the device. [`advance`](crate::EvolutionStrategy::advance) does not change `m`; the next
    /// [`tell`](crate::EvolutionStrategy::tell) begins by this rule. [`gradient`](crate::EvolutionStrategy::gradient) is f32 for these parameters.
    ///
    /// The copies are part of the [record](crate::StrategyRecord) of a strategy, and of checkpoints. Off by default.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::module::{Module, ModuleMapper, Param};
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{DType, Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// struct Half;
    ///
    /// impl ModuleMapper for Half {
    ///     fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
    ///         param.map(|value| value.cast(DType::BF16))
    ///     }
    /// }
    ///
    /// let model = LinearConfig::new(4, 2).init(&Device::flex()).map(&mut Half);
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_master_weights(true);
    /// let strategy = config.try_init(&model).unwrap();
    /// assert!(strategy.to_record().masters.is_some());
    /// ```
    ///
    /// # References
    ///
    /// Micikevicius et al., "Mixed Precision Training", ICLR 2018, arXiv 1710.03740, section 3.1.
    pub fn with_master_weights(mut self, on: bool) -> Self {
        self.master_weights = on;
        self
    }
}
