//! Noise scales by name of parameters.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets factors of the noise scale by name of parameters: the noise of parameter `p` has the scale
    ///
    /// `σ_p = σ·τ_p·s_p`,
    ///
    /// where σ is [relative to](crate::NoiseScale) `τ_p`, and `s_p` is the factor of the first name that matches, or 1 without a match.
    /// Names are paths, modules and patterns, as in [`with_roles`](Self::with_roles). For parts of a model that need more or less noise
    /// than the others, such as a head whose outputs are actions.
    ///
    /// The factor multiplies the noise `E` of the parameter as `τ_p` does, and so its estimate: in [`NoiseScale`](crate::NoiseScale), read
    /// `τ_p·s_p` in place of `τ_p`. SGD's step is multiplied by `s_p²`. Adam removes the factor again, unless [rates are relative to
    /// sigma](crate::RateScale).
    ///
    /// [`try_init`](Self::try_init) refuses a factor that is not above 0 or does not fit f32, and a name that matches no parameter. It also
    /// refuses a factor for a trained integer parameter, whose noise has no σ. For no noise at all, [freeze](Self::with_frozen) the
    /// parameter.
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
