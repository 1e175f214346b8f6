//! Generations over which members keep their state.

use super::EvolutionStrategyConfig;

impl EvolutionStrategyConfig {
    /// Sets how many generations are one episode: members keep their state over them
    /// ([`evaluate_with_state`](crate::Population::evaluate_with_state)) and start anew where
    /// [`resets_state`](crate::Population::resets_state) says so. A generation is then one unroll of the episode, truncated in
    /// time. Its fitness depends on the noise of all generations since the episode began, and the estimate of generation `g` sums
    /// over them:
    ///
    /// `G_g = −scale·Σ_m f_m s_m Σ_t E_{m,t}`, `t` from `⌊g₀/K⌋` to `⌊g/K⌋`,
    ///
    /// where `g₀ = T·⌊g/T⌋` is the episode's first generation, `T` its length, `K` the generations that share one draw
    /// ([`with_noise_reuse`](Self::with_noise_reuse)) and `E_{m,t}` the noise of noise epoch `t`.
    ///
    /// | `K` | estimate |
    /// |---|---|
    /// | 1 | persistent evolution strategies (PES): fresh noise in every unroll |
    /// | `T` | ES-Single: one draw for the episode, a sum of one term |
    /// | between | generalized PES |
    ///
    /// With raw fitness and fixed parameters, the expectation is the gradient of the unroll's fitness in the parameters of all
    /// unrolls up to it. For PES it is the gradient of the fitness smoothed by the noise; for a quadratic fitness all three are
    /// exact. The plain estimate, without an episode, sees only the parameters' influence within the unroll. Each draw of PES adds
    /// variance; the variance of ES-Single does not grow with the unrolls.
    ///
    /// Noise is a pure function: the sum draws it again and stores none, so an estimate costs one sum for each noise epoch. σ
    /// is constant within an episode. The only state is the generation: a checkpoint continues within an episode.
    /// `save_with_state` of the checkpoints in `eggroll-run` saves the members' own state.
    ///
    /// [`try_init`](Self::try_init) refuses an episode that is not a multiple of the shared generations, and projection onto
    /// input rows. With integer parameters it refuses all but ES-Single.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::OpenEsConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = LinearConfig::new(1, 1).with_bias(false).init(&device);
    /// let one = Tensor::<2>::ones([1, 1], &device);
    /// let config = EvolutionStrategyConfig::new(OpenEsConfig::new(), SgdConfig::new()).with_population_size(16).with_unroll_horizon(4);
    /// let mut strategy = config.try_init(&model)?;
    /// let mut state = Tensor::<2>::zeros([16, 1], &device);
    /// for _ in 0..8 {
    ///     let population = strategy.ask();
    ///     if population.resets_state() {
    ///         state = state.zeros_like();
    ///     }
    ///     let (fitness, next) = population.evaluate_with_state(state, |members, state| {
    ///         let state = state * 0.5 + model.forward(members.repeat(one.clone())); // [members, 1]
    ///         (-members.mean((state.clone() - 1.0).square()), state)
    ///     });
    ///     state = next;
    ///     strategy.tell(&mut model, population, fitness)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # References
    ///
    /// - PES: Vicol, Metz and Sohl-Dickstein, "Unbiased Gradient Estimation in Unrolled Computation Graphs with Persistent Evolution
    ///   Strategies", ICML 2021, arXiv 2112.13835.
    /// - ES-Single: Vicol, Kolter and Swersky, "Low-Variance Gradient Estimation in Unrolled Computation Graphs with ES-Single",
    ///   ICML 2023, arXiv 2304.11153.
    /// - Generalized PES: Li, Harrison, Sohl-Dickstein, Smith and Metz, "Variance-Reduced Gradient Estimation via Noise-Reuse in
    ///   Online Evolution Strategies", NeurIPS 2023, arXiv 2304.12180.
    pub fn with_unroll_horizon(mut self, generations: u64) -> Self {
        self.unroll_horizon = Some(generations);
        self
    }

    /// First generation of the horizon that contains a generation; without episodes, the generation itself.
    pub(crate) fn unroll_start(&self, generation: u64) -> u64 {
        generation - self.unroll_horizon.map_or(0, |horizon| generation % horizon)
    }

    /// The schedule's σ for a generation; within a horizon, the σ of its first generation.
    pub(crate) fn scheduled_sigma(&self, generation: u64) -> f64 {
        self.sigma.at(self.unroll_start(generation))
    }
}
