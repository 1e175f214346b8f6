//! Configuration of a strategy: everything but the model.

mod anchor_decay;
mod credit;
mod gradient_scale;
mod master_weights;
mod noise_scale;
mod rate_scale;
mod running;
mod scales;
mod sigma_schedule;
mod text;
mod units;
mod unroll_horizon;
mod validate;

pub use credit::Credit;
pub use gradient_scale::GradientScale;
pub use noise_scale::NoiseScale;
pub use rate_scale::RateScale;
pub use running::RunningSettings;
pub use sigma_schedule::{CustomSigma, SigmaSchedule};

use crate::error::ConfigError;
use crate::fitness::FitnessShaping;
use crate::optimizer::OptimizerConfig;
use crate::transform::{CustomTransform, GradientTransform};
use burn::lr_scheduler::LrSchedulerConfig;
use burn::optim::SgdConfig;
use eggroll_core::{NoiseSourceConfig, NoiserConfig, QEggrollConfig, Role};
use serde::Serialize;

/// Configuration of an [`EvolutionStrategy`](crate::EvolutionStrategy). As text it needs a noiser and an optimizer; other missing fields have the
/// values of [`new`](Self::new).
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
///     .with_population_size(256)
///     .with_sigma(0.02)
///     .with_learning_rate(0.002);
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(serde_json::from_str::<EvolutionStrategyConfig>(&json).unwrap().population_size, 256);
///
/// let short = r#"{ "noiser": { "name": "eggroll" }, "optimizer": { "name": "adam" }, "sigma": { "constant": 0.01 } }"#;
/// assert_eq!(serde_json::from_str::<EvolutionStrategyConfig>(short).unwrap().population_size, 256);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct EvolutionStrategyConfig {
    /// How parameters are perturbed: a noiser of the registry, or of another crate as a
    /// [`CustomNoiser`](eggroll_core::CustomNoiser).
    pub noiser: NoiserConfig,
    /// The optimizer that takes the estimated gradient.
    pub optimizer: OptimizerConfig,
    /// Members of a generation: even.
    pub population_size: usize,
    /// Noise scale by generation.
    pub sigma: SigmaSchedule,
    /// What the noise scale is relative to.
    #[serde(skip_serializing_if = "NoiseScale::is_absolute")]
    pub noise_scale: NoiseScale,
    /// Factors of the noise scale by name of parameters; see [`with_scales`](Self::with_scales).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scales: Vec<(String, f64)>,
    /// Learning rate by generation.
    pub learning_rate: LrSchedulerConfig,
    /// What the learning rate is relative to.
    #[serde(skip_serializing_if = "RateScale::is_absolute")]
    pub rate_scale: RateScale,
    /// From scores to weights.
    pub shaping: FitnessShaping,
    /// Scale of the estimate.
    pub gradient_scale: GradientScale,
    /// The largest gradient norm that reaches the optimizer; see [`with_clip_norm`](Self::with_clip_norm).
    pub clip_norm: Option<f64>,
    /// The program's transforms of gradients before the optimizer's step; see [`with_transform`](Self::with_transform).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<CustomTransform>,
    /// Decay towards the first parameters; see [`with_anchor_decay`](Self::with_anchor_decay).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_decay: Option<f64>,
    /// Whether half-precision parameters have f32 copies; see [`with_master_weights`](Self::with_master_weights).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub master_weights: bool,
    /// Seed of all noise.
    pub seed: u64,
    /// Generations that share one draw: 1 is fresh noise every generation, 0 the same noise always.
    pub noise_reuse: u64,
    /// Generations over which members keep their state; see
    /// [`with_unroll_horizon`](Self::with_unroll_horizon).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unroll_horizon: Option<u64>,
    /// Where the noise comes from: drawn on the fly, cached, or a table.
    pub noise_source: NoiseSourceConfig,
    /// Roles by name of parameters; see [`with_roles`](Self::with_roles).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<(String, Role)>,
    /// Names of parameters that get neither noise nor updates; see [`with_frozen`](Self::with_frozen).
    pub frozen: Vec<String>,
    /// Members that `evaluate` passes to its closure at a time; chosen by memory if not set.
    pub chunk_size: Option<usize>,
    /// Bytes of memory that noise and chunks may take; see [`with_memory_limit`](Self::with_memory_limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Whether weights learn from the score of every part or from the mean.
    pub credit: Credit,
}

impl EvolutionStrategyConfig {
    /// A strategy for a model of integer parameters, without optimizer, learning rate or σ schedule ([`IntegerAdamWConfig`](crate::IntegerAdamWConfig) and
    /// [`IntegerMuonConfig`](crate::IntegerMuonConfig) are optimizers of integers). Population 256, fresh noise every generation, seed 0.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{DType, Device, Int, Tensor};
    /// use eggroll_core::QEggrollConfig;
    /// use eggroll_core::ops::integer::{Rounding, log_likelihood};
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
    pub fn integer(noiser: QEggrollConfig) -> Self {
        Self::new(noiser, SgdConfig::new())
    }

    /// Population 256, σ 0.02, the optimizer's [default rate](OptimizerConfig::default_rate) (0.002 for Adam), standardized fitness, fresh
    /// noise every generation, seed 0. If the noiser has baselines, they are subtracted ([`FitnessShaping::BaselineSubtraction`]) and
    /// gradients are clipped to a norm of 1.
    pub fn new(noiser: impl Into<NoiserConfig>, optimizer: impl Into<OptimizerConfig>) -> Self {
        let noiser = noiser.into();
        let baselines = noiser.baselines();
        let optimizer = optimizer.into();
        Self {
            noiser,
            population_size: 256,
            sigma: SigmaSchedule::Constant(0.02),
            noise_scale: NoiseScale::default(),
            scales: Vec::new(),
            learning_rate: LrSchedulerConfig::Constant(optimizer.default_rate()),
            rate_scale: RateScale::default(),
            optimizer,
            shaping: baselines
                .map_or_else(FitnessShaping::default, |size| FitnessShaping::BaselineSubtraction { size }),
            gradient_scale: GradientScale::default(),
            clip_norm: baselines.map(|_| 1.0),
            transforms: Vec::new(),
            anchor_decay: None,
            master_weights: false,
            seed: 0,
            noise_reuse: 1,
            unroll_horizon: None,
            noise_source: NoiseSourceConfig::OnTheFly,
            roles: Vec::new(),
            frozen: Vec::new(),
            chunk_size: None,
            memory_limit: None,
            credit: Credit::default(),
        }
    }

    /// Sets the members of a generation.
    pub fn with_population_size(mut self, members: usize) -> Self {
        self.population_size = members;
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
    pub fn with_shaping(mut self, shaping: impl Into<FitnessShaping>) -> Self {
        self.shaping = shaping.into();
        self
    }

    /// Sets the scale of the estimate.
    pub fn with_gradient_scale(mut self, scale: GradientScale) -> Self {
        self.gradient_scale = scale;
        self
    }

    /// Sets the largest gradient norm, over all parameters together, that reaches the optimizer: a longer gradient is scaled down to
    /// it ([`clip_norm`](crate::clip_norm())). If not set, only the optimizer's own clipping applies, to the gradients of single
    /// parameters.
    pub fn with_clip_norm(mut self, longest: impl Into<Option<f64>>) -> Self {
        self.clip_norm = longest.into();
        self
    }

    /// Adds a [`GradientTransform`] of the program, after the transforms added before: it changes the clipped gradient before the optimizer's step.
    /// Files hold the name only: a transform that differs, even in a setting, needs another name.
    pub fn with_transform(mut self, name: impl Into<String>, transform: impl GradientTransform + 'static) -> Self {
        self.transforms.push(CustomTransform::new(name, transform));
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

    /// Sets roles by name. The first name that matches a parameter decides; a parameter without a match keeps the noiser's role.
    /// [`with_frozen`](Self::with_frozen) takes precedence over roles.
    ///
    /// A name is one of these:
    /// - the dotted path of a parameter (`encoder.layers.0.weight`);
    /// - the path of a module, for all parameters in it (`encoder.layers`);
    /// - a pattern over paths of parameters (`encoder.*.bias`): `*` stands for any run of characters, dots included, `?` for one character.
    ///
    /// `with_frozen` and [`with_scales`](Self::with_scales) take the same names.
    ///
    /// [`try_init`](Self::try_init) refuses a name that matches no parameter, and a role that a parameter cannot have, such as
    /// low-rank noise for a vector.
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

    /// Freezes parameters by [name](Self::with_roles): a path, a module or a pattern. Float parameters with Burn's `no_grad()` are frozen too
    /// ([identifiers](eggroll_core::ParameterTable#identifiers)).
    ///
    /// [`try_init`](Self::try_init) refuses a name that matches no parameter.
    pub fn with_frozen<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.frozen = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the members that `evaluate` passes to its closure at a time; rounded up to whole pairs.
    pub fn with_chunk_size(mut self, members: usize) -> Self {
        self.chunk_size = Some(members);
        self
    }

    /// Sets the bytes of memory that noise and chunks of members may take. If not set, the limit depends on where the model is when the
    /// strategy is made:
    /// - host memory: what Linux reports as available, within the limits of control groups (containers, jobs of a cluster; cgroup v1
    ///   and v2) and of the address space (`ulimit -v`);
    /// - a device: the memory that it reports;
    /// - elsewhere: no limit.
    ///
    /// [`try_init`](Self::try_init) refuses noise that does not fit, and a chunk that would not fit even with one row for each member. An evaluation
    /// measures the bytes that the perturbed layers return for a member. If a chunk would exceed the limit, it panics with
    /// [`MemoryError::Chunk`](crate::MemoryError::Chunk), which proposes one that fits. If a chunk may not fit, the first evaluation begins with a chunk
    /// of 32 members to measure. Other operations of the model are not counted. Rollouts on tensors are not measured: they use the chunk of
    /// [`with_chunk_size`](Self::with_chunk_size), if set.
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// This configuration with the chunk size and memory limit of another. Neither changes an update, so a run may continue with less
    /// memory, or more.
    pub fn with_limits_of(&self, other: &Self) -> Self {
        Self { chunk_size: other.chunk_size, memory_limit: other.memory_limit, ..self.clone() }
    }

    /// This configuration without chunk size and memory limit, which change no update: equal for runs that make the same updates.
    pub fn of_updates(&self) -> Self {
        Self { chunk_size: None, memory_limit: None, ..self.clone() }
    }

    /// This configuration with the functions that `given` has under the same names: a [custom](crate::CustomShaping) shaping rule, a
    /// [custom](crate::CustomSigma) sigma schedule and [transforms](Self::with_transform). Files hold only their names.
    pub fn with_functions_of(&self, given: &Self) -> Self {
        let mut config = self.clone();
        if config.shaping == given.shaping {
            config.shaping = given.shaping.clone();
        }
        if config.sigma == given.sigma {
            config.sigma = given.sigma.clone();
        }
        for own in &mut config.transforms {
            if let Some(same) = given.transforms.iter().find(|given| *given == own) {
                *own = same.clone();
            }
        }
        config
    }

    /// Noise epoch of a generation: `g div noise_reuse`, or 0 if the noise is always the same.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoiseGeneration`] beyond 2³².
    pub fn noise_generation(&self, generation: u64) -> Result<u32, ConfigError> {
        let noise_generation = generation.checked_div(self.noise_reuse).unwrap_or(0);
        u32::try_from(noise_generation).map_err(|_| ConfigError::NoiseGeneration(noise_generation))
    }
}
