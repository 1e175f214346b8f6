//! Noise scales by name of parameters.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets factors of the noise scale by name of parameters: the noise of parameter `p` has the scale
    ///
    /// `σ_p = σ·τ_p·s_p`,
    ///
    /// `τ_p` what σ is [relative to](crate::NoiseScale) and `s_p` the factor of the first name that matches; 1 where none does. Names are
    /// those of [`with_roles`](Self::with_roles): paths, modules and patterns. For parts of a model in which the same σ is too much or too
    /// little, as a head whose outputs are actions.
    ///
    /// The factor multiplies the noise `E` of the parameter as `τ_p` does, and so its estimate: [`NoiseScale`](crate::NoiseScale) says what the
    /// scales of estimates mean, with `τ_p·s_p` in place of `τ_p`. SGD steps by `s_p²`. Adam takes the factor out again, but for
    /// [rates relative to sigma](crate::RateScale).
    ///
    /// [`try_init`](Self::try_init) refuses a factor that is not above 0 or does not fit f32, a name that matches no parameter, and one that
    /// gives a factor to a trained integer parameter, whose noise has no σ. Parameters without noise are
    /// [frozen](Self::with_frozen) ones.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::AdamConfig;
    /// use burn::tensor::Device;
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// let model = LinearConfig::new(16, 4).init(&Device::flex());
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_sigma(0.5).with_scales([("*bias", 0.25)]);
    /// let population = config.try_init(&model).unwrap().ask();
    /// assert_eq!([0, 1].map(|position| population.perturbation().parameter(position).sigma), [0.5, 0.125]);
    ///
    /// let error = config.with_scales([("*bias", 0.0)]).try_init(&model).err().unwrap();
    /// assert!(error.to_string().starts_with("the pattern \"*bias\" has the noise scale 0.0"));
    /// ```
    pub fn with_scales<S: Into<String>>(mut self, scales: impl IntoIterator<Item = (S, f64)>) -> Self {
        self.scales = scales.into_iter().map(|(pattern, scale)| (pattern.into(), scale)).collect();
        self
    }
}
