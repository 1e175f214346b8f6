//! Ask and tell.

mod anchor;
mod estimates;
mod masters;
mod probe;
mod record;
mod running;
mod tell;

pub use probe::{ProbedSigma, SigmaProbe};
pub use record::StrategyRecord;

use crate::config::{Credit, EvolutionStrategyConfig, NoiseScale, RunningSettings};
use crate::error::{ConfigError, Error};
use crate::estimate::horizon;
use crate::memory;
use crate::population::{Population, RowCheck};
use crate::report::GenerationReport;
use crate::update::{self, Chain};
use burn::lr_scheduler::module_lr_scheduler::{ModuleLrScheduler, ModuleLrSchedulerConfig};
use burn::module::Module;
use eggroll_core::integer::VoteLevels;
use eggroll_core::profile::{self, Component};
use eggroll_core::scope::Perturbation;
use eggroll_core::sync::locked;
use eggroll_core::{MaterializedNoise, Noiser, PairRange, ParameterKind, ParameterSummary, ParameterTable};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// An evolution strategy for one model: [`ask`](Self::ask) for a population, evaluate it, [`tell`](Self::tell) the
/// fitness.
///
/// Its state is small: the generation, the optimizer, the learning-rate schedule, and the state of [transforms](crate::GradientTransform).
/// Noise is never stored. Some settings add state:
/// - noise [relative to spread](crate::NoiseScale): a number for each parameter;
/// - [anchor decay](EvolutionStrategyConfig::with_anchor_decay): the initial parameters;
/// - [master weights](EvolutionStrategyConfig::with_master_weights): f32 copies of half-precision parameters.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut model = LinearConfig::new(2, 1).init(&device);
/// let x = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], &device);
/// let y = Tensor::<2>::from_floats([[1.0], [2.0], [3.0]], &device);
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
///     .with_population_size(64)
///     .with_learning_rate(0.5);
/// let mut strategy = config.try_init(&model)?;
/// for _ in 0..200 {
///     let population = strategy.ask();
///     let fitness = population.evaluate(|members| {
///         let error = model.forward_shared(x.clone()) - members.repeat(y.clone());
///         -members.mean(error.square())
///     });
///     strategy.tell(&mut model, population, fitness)?;
/// }
/// let error: f32 = (model.forward(x) - y).abs().max().into_scalar();
/// assert!(error < 0.1, "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EvolutionStrategy {
    config: EvolutionStrategyConfig,
    noiser: Arc<dyn Noiser>,
    table: Arc<ParameterTable>,
    /// The optimizer, and the other links of an update that have state.
    chain: Chain,
    scheduler: ModuleLrScheduler,
    generation: u64,
    member_bytes: u64,
    /// Bytes of memory that may be used, if known.
    memory_limit: Option<u64>,
    report: Option<GenerationReport>,
    settings: RunningSettings,
    /// The settings of the generation told last.
    told: RunningSettings,
    /// What is held for the noise epoch asked for last.
    held: Arc<Mutex<Option<Arc<MaterializedNoise>>>>,
    /// Row checks from the first generation by part, by position.
    rows: Option<Arc<[RowCheck]>>,
}

impl EvolutionStrategyConfig {
    /// Makes the strategy for `model`.
    ///
    /// # Errors
    ///
    /// An [`Error`] with the value that cannot be used:
    /// - population, rank, sigma, group, chunk, norm, schedule or frozen names;
    /// - a number that does not fit f32;
    /// - a trained parameter that is NaN or infinite, or does not allow relative noise, scaled noise or decay;
    /// - memory.
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
}

impl EvolutionStrategy {
    fn new<M: Module>(config: EvolutionStrategyConfig, model: &M) -> Result<Self, Error> {
        let noiser = config.noiser.init()?;
        let table = ParameterTable::with_roles(model, noiser.as_ref(), &config.roles, &config.frozen)?;
        config.noise_source.validate(&table)?;
        let levels = noiser.properties().integer.map(|rule| rule.levels());
        if levels == Some(VoteLevels::Five)
            && matches!(config.noise_source, eggroll_core::NoiseSourceConfig::Table { .. })
        {
            return Err(ConfigError::LevelsOfTable.into());
        }
        horizon::validate_parameters(&config, &table)?;
        table.check_finite(model)?;
        let spreads = match config.noise_scale {
            NoiseScale::Absolute => None,
            NoiseScale::RelativeToSpread => {
                refuse_integers(&table, "noise_scale relative_to_spread")?;
                Some(table.measure_spreads(model)?)
            }
            NoiseScale::RelativeToPopulation => {
                refuse_integers(&table, "noise_scale relative_to_population")?;
                let share = update::population_share(&table, config.population_size).sqrt().sqrt();
                Some(table.measure_spreads(model)?.into_iter().map(|spread| spread * share).collect())
            }
        };
        let table = Arc::new(table.with_spreads(spreads).with_scales(&config.scales)?);
        if config.anchor_decay.is_some_and(|decay| decay != 0.0) {
            refuse_integers(&table, "anchor_decay")?;
        }
        if !config.transforms.is_empty() {
            refuse_integers(&table, "transforms")?;
        }
        let chain = Chain::init(&config, &table, model)?;
        if chain.optimizer.moves_integers() {
            refuse_floats(&table)?;
        }
        let memory_limit = memory::limit(&config, &table);
        // Nothing is larger than an address space, even if the memory is unknown.
        memory::check(&config, &table, memory_limit.unwrap_or(u64::MAX).min(isize::MAX as u64))?;
        Ok(Self {
            chain,
            scheduler: ModuleLrSchedulerConfig::new(config.learning_rate.clone())
                .init()
                .map_err(|reason| ConfigError::Schedule { reason, schedule: config.learning_rate.to_string() })?,
            generation: 0,
            member_bytes: 0,
            memory_limit,
            report: None,
            settings: RunningSettings::default(),
            told: RunningSettings::default(),
            held: Arc::default(),
            rows: None,
            config,
            noiser,
            table,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &EvolutionStrategyConfig {
        &self.config
    }

    /// The parameters with their roles, in the order that addresses their noise.
    pub fn parameters(&self) -> &ParameterTable {
        &self.table
    }

    /// Whether the signs of pairs alone move integer parameters, without votes in [levels](eggroll_core::integer::VoteLevels).
    pub fn votes_are_signs(&self) -> bool {
        self.noiser.properties().integer.is_none_or(|rule| rule.levels() == VoteLevels::Sign)
    }

    /// The parameters as a table to print, with the noise of this strategy's pairs.
    pub fn parameter_summary(&self) -> ParameterSummary<'_> {
        self.table.summary((self.config.population_size / 2) as u32)
    }

    /// Generations told so far.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The report of the last generation.
    pub fn report(&self) -> Option<&GenerationReport> {
        self.report.as_ref()
    }

    /// Checks of the rows that each parameter is given, from the first generation that learned by [part](Credit), in the order of the table; `None` before it.
    pub fn row_checks(&self) -> Option<&[RowCheck]> {
        self.rows.as_deref()
    }

    /// The population of the coming generation. Asking changes nothing: it may be repeated.
    ///
    /// # Panics
    ///
    /// Panics beyond 2³² noise epochs.
    #[track_caller]
    pub fn ask(&self) -> Population {
        profile::generation(self.generation);
        let _span = profile::span(Component::Ask, 0);
        let noise_generation = self.config.noise_generation(self.generation);
        let noise_generation = noise_generation.unwrap_or_else(|error| panic!("{error}"));
        Population {
            generation: self.generation,
            resets_state: self.generation == self.config.unroll_start(self.generation),
            size: self.config.population_size,
            first: 0,
            members: self.config.population_size,
            perturbation: Perturbation {
                noiser: self.noiser.clone(),
                table: self.table.clone(),
                seed: self.config.seed,
                generation: noise_generation,
                sigma: self.sigma(),
                held: self.held(noise_generation),
            },
            settings: self.settings,
            chunk_size: self.config.chunk_size,
            member_bytes: Arc::new(AtomicU64::new(self.member_bytes)),
            memory_limit: self.memory_limit,
            uses: Arc::default(),
            fields: Arc::default(),
            credit: self.credit(),
            moves_integers: self.chain.optimizer.moves_integers(),
            observes: Arc::default(),
            inputs: Arc::default(),
            knows_rows: self.rows.is_some(),
            rows: Arc::new(Mutex::new(self.rows.clone())),
        }
    }

    /// What weights learn from, as configured. It is [`Credit::Mean`] if estimates depend on earlier generations, or if all
    /// trained parameters are integers moved by a threshold of votes.
    pub fn credit(&self) -> Credit {
        let horizon = self.config.unroll_horizon.unwrap_or(1);
        let can = self.table.trained(ParameterKind::Float).next().is_some() || self.chain.optimizer.moves_integers();
        if horizon == 1 && (can || self.config.credit == Credit::Parts) { self.config.credit } else { Credit::Mean }
    }

    /// The noise to hold for a noise epoch; reused if the last call was for the same epoch.
    fn held(&self, noise_generation: u32) -> Arc<MaterializedNoise> {
        let mut last = locked(&self.held);
        let known = last.as_ref().filter(|held| held.generation() == noise_generation);
        known.cloned().unwrap_or_else(|| {
            let pairs = PairRange::new(0, (self.config.population_size / 2) as u32);
            let (source, seed) = (self.config.noise_source, self.config.seed);
            let held = Arc::new(source.hold(&self.table, seed, noise_generation, pairs, last.as_deref()));
            *last = Some(held.clone());
            held
        })
    }
}

/// Refuses integer parameters that are trained.
fn refuse_integers(table: &ParameterTable, setting: &'static str) -> Result<(), ConfigError> {
    match table.trained(ParameterKind::Integer).next() {
        Some((_, entry)) => Err(ConfigError::IntegerParameter { setting, path: entry.path.clone() }),
        None => Ok(()),
    }
}

/// Refuses float parameters that are trained.
fn refuse_floats(table: &ParameterTable) -> Result<(), ConfigError> {
    match table.trained(ParameterKind::Float).next() {
        Some((_, entry)) => Err(ConfigError::FloatParameter(entry.path.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
