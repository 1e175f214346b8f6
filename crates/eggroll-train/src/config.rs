//! Configuration of a strategy: everything but the model.

use crate::error::Error;
use crate::fitness::FitnessShaping;
use crate::input_projection::InputProjection;
use crate::optimizer::OptimizerConfig;
use crate::strategy::EvolutionStrategy;
use burn::lr_scheduler::LrSchedulerConfig;
use burn::module::Module;
use burn::optim::SgdConfig;
use eggroll_core::{NoiseSourceConfig, NoiserConfig, QEggrollConfig, Role};
use serde::{Deserialize, Serialize};

/// How the weighted sum of noise is scaled into a gradient: `G = −scale·Σ_m f_m s_m E_m`, where `E_m` is the noise
/// added to the parameter (`(σ/√r)·B·Aᵀ`, or `σ·ε`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateScale {
    /// `√N/N`, as the JAX reference HyperscaleES does: σ multiplies.
    #[default]
    Hyperscale,
    /// `1/(N·σ²)`: the score-function gradient, in units of the fitness per unit of the parameter.
    Score,
    /// `1/(N·σ)`: Eq. 6 of arXiv 2511.16652, neither σ nor √N.
    Paper,
}

impl EstimateScale {
    /// The factor for a population of `members` and noise scale `sigma`.
    pub fn factor(&self, members: usize, sigma: f64) -> f64 {
        let n = members as f64;
        match self {
            Self::Hyperscale => n.sqrt() / n,
            Self::Score => 1.0 / (n * sigma * sigma),
            Self::Paper => 1.0 / (n * sigma),
        }
    }
}

/// Noise scale σ by generation: a pure function, so that it needs no state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SigmaSchedule {
    /// The same σ always.
    Constant(f64),
    /// `σ·decayᵍ`
    Exponential {
        /// σ of generation 0.
        initial: f64,
        /// Factor for each generation, in (0, 1].
        decay: f64,
    },
    /// From `initial` to `last` along half a cosine over `generations`, then `last`.
    Cosine {
        /// σ of generation 0.
        initial: f64,
        /// σ from generation `generations` on.
        last: f64,
        /// Length of the schedule.
        generations: u64,
    },
}

impl SigmaSchedule {
    /// σ of a generation.
    pub fn at(&self, generation: u64) -> f64 {
        match *self {
            Self::Constant(sigma) => sigma,
            Self::Exponential { initial, decay } => initial * decay.powf(generation as f64),
            Self::Cosine { initial, last, generations } => {
                let progress = generation.min(generations) as f64 / generations.max(1) as f64;
                last + (initial - last) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
            }
        }
    }

    fn validate(&self) -> Result<(), Error> {
        let check = |sigma: f64| if sigma > 0.0 && sigma.is_finite() { Ok(()) } else { Err(Error::Sigma(sigma)) };
        match *self {
            Self::Constant(sigma) => check(sigma),
            Self::Exponential { initial, decay } => {
                let fits = decay > 0.0 && decay <= 1.0;
                check(initial).and(if fits { Ok(()) } else { Err(Error::SigmaDecay(decay)) })
            }
            Self::Cosine { initial, last, .. } => check(initial).and(check(last)),
        }
    }
}

impl From<f64> for SigmaSchedule {
    fn from(sigma: f64) -> Self {
        Self::Constant(sigma)
    }
}

/// Configuration of an [`EvolutionStrategy`].
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
///     .with_population(256)
///     .with_sigma(0.02)
///     .with_learning_rate(0.002);
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(serde_json::from_str::<EvolutionStrategyConfig>(&json).unwrap().population, 256);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolutionStrategyConfig {
    /// How parameters are perturbed.
    pub noiser: NoiserConfig,
    /// What the estimated gradient is fed to.
    pub optimizer: OptimizerConfig,
    /// Members of a generation: even.
    pub population: usize,
    /// Noise scale by generation.
    pub sigma: SigmaSchedule,
    /// Learning rate by generation.
    pub learning_rate: LrSchedulerConfig,
    /// From scores to weights.
    pub shaping: FitnessShaping,
    /// Scale of the estimate.
    pub estimate_scale: EstimateScale,
    /// Seed of all noise.
    pub seed: u64,
    /// Generations that share one draw: 1 is fresh noise every generation, 0 the same noise always.
    pub noise_reuse: u64,
    /// Where the noise comes from: drawn on the fly, cached, or a table.
    #[serde(default)]
    pub noise_source: NoiseSourceConfig,
    /// Roles by pattern over the parameters' paths; see [`with_roles`](Self::with_roles).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<(String, Role)>,
    /// Parameters, or modules with all their parameters, that get neither noise nor updates.
    pub frozen: Vec<String>,
    /// Members that `evaluate` passes to its closure at a time; chosen by memory if not given.
    pub chunk: Option<usize>,
    /// Bytes of memory that noise and chunks may take; see [`with_memory_limit`](Self::with_memory_limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Which estimates are projected onto the span of a layer's input rows.
    #[serde(default)]
    pub input_projection: InputProjection,
}

impl EvolutionStrategyConfig {
    /// A strategy for a model of integer parameters: no optimizer, learning rate or σ schedule has a part in it. Population 256,
    /// fresh noise every generation, seed 0.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{DType, Device, Int, Tensor};
    /// use eggroll_core::QEggrollConfig;
    /// use eggroll_core::ops::integer::log_likelihood;
    /// use eggroll_nn::integer::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = LinearConfig::new(16, 4).init(&device);
    /// let x = Tensor::<2, Int>::full([1, 16], 16, (&device, DType::I8));
    /// let mut strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).try_init(&model)?;
    /// for _ in 0..5 {
    ///     let population = strategy.ask();
    ///     let fitness = population.evaluate_integers(|members| {
    ///         let logits = model.forward(members.expand(x.clone()));
    ///         let target = Tensor::<1, Int>::full([members.count()], 2, &device);
    ///         log_likelihood(logits, target, members.count())
    ///     });
    ///     model = strategy.tell(model, population, fitness)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn integer(noiser: QEggrollConfig) -> Self {
        Self::new(noiser, SgdConfig::new())
    }

    /// Population 256, σ 0.02, learning rate 0.002, z-score, fresh noise every generation, seed 0.
    pub fn new(noiser: impl Into<NoiserConfig>, optimizer: impl Into<OptimizerConfig>) -> Self {
        Self {
            noiser: noiser.into(),
            optimizer: optimizer.into(),
            population: 256,
            sigma: SigmaSchedule::Constant(0.02),
            learning_rate: LrSchedulerConfig::Constant(0.002),
            shaping: FitnessShaping::default(),
            estimate_scale: EstimateScale::default(),
            seed: 0,
            noise_reuse: 1,
            noise_source: NoiseSourceConfig::OnTheFly,
            roles: Vec::new(),
            frozen: Vec::new(),
            chunk: None,
            memory_limit: None,
            input_projection: InputProjection::default(),
        }
    }

    /// Sets the members of a generation.
    pub fn with_population(mut self, population: usize) -> Self {
        self.population = population;
        self
    }

    /// Sets the noise scale, constant or by schedule.
    pub fn with_sigma(mut self, sigma: impl Into<SigmaSchedule>) -> Self {
        self.sigma = sigma.into();
        self
    }

    /// Sets the learning rate, constant or by one of burn's schedules; one step is one generation.
    pub fn with_learning_rate(mut self, learning_rate: impl Into<LrSchedulerConfig>) -> Self {
        self.learning_rate = learning_rate.into();
        self
    }

    /// Sets the fitness shaping.
    pub fn with_shaping(mut self, shaping: FitnessShaping) -> Self {
        self.shaping = shaping;
        self
    }

    /// Sets the scale of the estimate.
    pub fn with_estimate_scale(mut self, scale: EstimateScale) -> Self {
        self.estimate_scale = scale;
        self
    }

    /// Sets the seed of all noise.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how many generations share one draw.
    pub fn with_noise_reuse(mut self, generations: u64) -> Self {
        self.noise_reuse = generations;
        self
    }

    /// Sets where the noise comes from.
    pub fn with_noise_source(mut self, source: NoiseSourceConfig) -> Self {
        self.noise_source = source;
        self
    }

    /// Gives roles by pattern over the parameters' dotted paths (`encoder.layers.0.weight`): `*` stands for any run of characters,
    /// dots included, `?` for one character. The first pattern that matches a parameter decides; a parameter that none matches keeps
    /// the noiser's role. What [`with_frozen`](Self::with_frozen) names is frozen whatever the patterns say.
    ///
    /// [`try_init`](Self::try_init) refuses a pattern that matches no parameter, and a role that a parameter cannot have, as low-rank
    /// noise of a vector.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::AdamConfig;
    /// use burn::tensor::Device;
    /// use eggroll_core::{EggrollConfig, Role};
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// let model = LinearConfig::new(16, 4).init(&Device::flex());
    /// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
    ///     .with_roles([("*bias", Role::Frozen), ("*", Role::LowRank { rank: 4 })])
    ///     .try_init(&model)
    ///     .unwrap();
    /// println!("{}", strategy.parameter_summary());
    /// assert_eq!(strategy.parameters().entries()[0].role, Role::LowRank { rank: 4 });
    /// ```
    pub fn with_roles<S: Into<String>>(mut self, roles: impl IntoIterator<Item = (S, Role)>) -> Self {
        self.roles = roles.into_iter().map(|(pattern, role)| (pattern.into(), role)).collect();
        self
    }

    /// Names parameters, or modules with all their parameters, that stay as they are.
    pub fn with_frozen<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.frozen = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the members that `evaluate` passes to its closure at a time; rounded up to whole pairs.
    pub fn with_chunk(mut self, members: usize) -> Self {
        self.chunk = Some(members);
        self
    }

    /// Sets the bytes of memory that noise and chunks of members may take. If not set, it is what Linux says is available when the
    /// strategy is made, for models in host memory; elsewhere there is no limit.
    ///
    /// [`try_init`](Self::try_init) refuses noise that does not fit, and a chunk of which not even one row for each member would.
    /// An evaluation measures what the perturbed layers return for a member, and refuses a chunk that would take more than the limit by
    /// a panic with [`Error::ChunkMemory`], which proposes one that fits. To measure, an evaluation of a chunk that may not fit
    /// begins with one of 32 members, once. Other operations of the model are not counted.
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Sets which estimates are projected onto the span of a layer's input rows.
    pub fn with_input_projection(mut self, projection: InputProjection) -> Self {
        self.input_projection = projection;
        self
    }

    /// Makes the strategy for `model`.
    ///
    /// # Errors
    ///
    /// An [`Error`] with the value that cannot be used: population, rank, sigma, group, chunk, schedule, frozen names, memory.
    pub fn try_init<M: Module>(&self, model: &M) -> Result<EvolutionStrategy, Error> {
        self.validate()?;
        EvolutionStrategy::new(self.clone(), model)
    }

    /// Makes the strategy for `model`.
    ///
    /// # Panics
    ///
    /// Panics where [`try_init`](Self::try_init) returns an error.
    #[track_caller]
    pub fn init<M: Module>(&self, model: &M) -> EvolutionStrategy {
        match self.try_init(model) {
            Ok(strategy) => strategy,
            Err(error) => panic!("{error}"),
        }
    }

    fn validate(&self) -> Result<(), Error> {
        if self.population < 2 || !self.population.is_multiple_of(2) || self.population / 2 > u32::MAX as usize {
            return Err(Error::Population(self.population));
        }
        if self.chunk == Some(0) {
            return Err(Error::Chunk(0));
        }
        match self.learning_rate {
            LrSchedulerConfig::Constant(rate) if !(rate >= 0.0 && rate.is_finite()) => {
                return Err(Error::LearningRate(rate));
            }
            _ => {}
        }
        self.sigma.validate()?;
        self.shaping.validate(self.population)
    }

    /// Noise generation of a generation: `g div noise_reuse`, or 0 if the noise is always the same.
    ///
    /// # Errors
    ///
    /// [`Error::NoiseGeneration`] beyond 2³².
    pub fn noise_generation(&self, generation: u64) -> Result<u32, Error> {
        let noise_generation = generation.checked_div(self.noise_reuse).unwrap_or(0);
        u32::try_from(noise_generation).map_err(|_| Error::NoiseGeneration(noise_generation))
    }
}
