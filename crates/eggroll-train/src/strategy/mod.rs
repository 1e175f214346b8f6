//! Ask and tell.

mod estimates;
mod probe;

pub use probe::{ProbedSigma, SigmaProbe};

use crate::config::{EvolutionStrategyConfig, RunningSettings};
use crate::error::{ConfigError, Error, RecordError, TellError};
use crate::estimate::horizon;
use crate::fitness::Fitness;
use crate::memory;
use crate::optimizer::Optimizer;
use crate::population::Population;
use crate::report::GenerationReport;
use crate::votes;
use burn::lr_scheduler::LrSchedulerRecord;
use burn::lr_scheduler::module_lr_scheduler::{ModuleLearningRate, ModuleLrScheduler, ModuleLrSchedulerConfig};
use burn::module::Module;
use burn::optim::{GradientsParams, OptimizerRecord};
use eggroll_core::profile::{self, Component};
use eggroll_core::scope::Perturbation;
use eggroll_core::sync::locked;
use eggroll_core::{
    MaterializedNoise, Noiser, PairRange, ParameterEntry, ParameterKind, ParameterSummary, ParameterTable, Role,
};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

/// An evolution strategy for one model: [`ask`](Self::ask) for a population, evaluate it, [`tell`](Self::tell) the
/// fitness.
///
/// Its state is small: the generation, the optimizer and the learning-rate schedule. Noise is never stored.
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
    optimizer: Optimizer,
    scheduler: ModuleLrScheduler,
    generation: u64,
    member_bytes: usize,
    /// Bytes of memory that may be used, if known.
    memory_limit: Option<u64>,
    report: Option<GenerationReport>,
    settings: RunningSettings,
    /// The settings of the generation told last.
    told: RunningSettings,
    /// What is held for the noise epoch asked for last.
    held: Arc<Mutex<Option<Arc<MaterializedNoise>>>>,
}

/// The state of a strategy, as [`to_record`](EvolutionStrategy::to_record) gives it.
pub struct StrategyRecord {
    /// Generations told.
    pub generation: u64,
    /// State of the optimizer.
    pub optimizer: OptimizerRecord,
    /// State of the learning-rate schedule.
    pub schedule: LrSchedulerRecord,
    /// What was set while the strategy ran.
    pub settings: RunningSettings,
}

impl EvolutionStrategyConfig {
    /// Makes the strategy for `model`.
    ///
    /// # Errors
    ///
    /// An [`Error`] with the value that cannot be used: population, rank, sigma, group, chunk, norm, schedule, frozen names, a number that
    /// f32 cannot hold, a trained parameter of the model that is NaN or infinite, memory.
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
        let table = Arc::new(ParameterTable::with_roles(model, noiser.as_ref(), &config.roles, &config.frozen)?);
        config.noise_source.validate(&table)?;
        horizon::validate_parameters(&config, &table)?;
        table.check_finite(model)?;
        let optimizer = config.optimizer.init();
        if optimizer.moves_integers() {
            refuse_floats(&table)?;
        }
        let memory_limit = memory::limit(&config, &table);
        // Nothing is larger than an address space, whatever is known of the memory.
        memory::check(&config, &table, memory_limit.unwrap_or(u64::MAX).min(isize::MAX as u64))?;
        Ok(Self {
            optimizer,
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
        let unroll_start = self.config.unroll_start(self.generation);
        Population {
            generation: self.generation,
            resets_state: self.generation == unroll_start,
            first: 0,
            members: self.config.population_size,
            perturbation: Perturbation {
                noiser: self.noiser.clone(),
                table: self.table.clone(),
                seed: self.config.seed,
                generation: noise_generation,
                sigma: self.settings.sigma.unwrap_or_else(|| self.config.sigma.at(unroll_start)),
                held: self.held(noise_generation),
            },
            settings: self.settings,
            chunk_size: self.config.chunk_size,
            member_bytes: Arc::new(AtomicUsize::new(self.member_bytes)),
            memory_limit: self.memory_limit,
            uses: Arc::default(),
            input_projection: self.config.input_projection,
            unperturbed_rows: Arc::default(),
        }
    }

    /// The noise to hold for a noise epoch; what was held for it before, if it was asked for last.
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

    /// What changes from generation to generation, but for the model: with the configuration and the model all that a checkpoint holds.
    pub fn to_record(&self) -> StrategyRecord {
        StrategyRecord {
            generation: self.generation,
            optimizer: self.optimizer.to_record(),
            schedule: self.scheduler.to_record(),
            settings: self.settings,
        }
    }

    /// [`load_record`](Self::load_record) of a record that was read from a file, which may be anything.
    ///
    /// Burn panics of some records: such a panic is caught here, and the panic hook sees it.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if Burn cannot read the record.
    pub fn try_load_record(mut self, record: StrategyRecord) -> Result<Self, RecordError> {
        let StrategyRecord { generation, optimizer, schedule, settings } = record;
        settings.validate().map_err(|error| RecordError::Settings(error.to_string()))?;
        let (before, scheduler) = (self.optimizer, self.scheduler);
        self.optimizer = caught(|| before.load_record(optimizer)).map_err(RecordError::Optimizer)?;
        self.scheduler = caught(|| scheduler.load_record(schedule)).map_err(RecordError::Schedule)?;
        self.generation = generation;
        self.settings = settings;
        Ok(self)
    }

    /// Continues where a strategy of the same configuration and model stood when it made the record.
    ///
    /// # Panics
    ///
    /// May panic if the record is not one that a strategy has made: see [`try_load_record`](Self::try_load_record).
    pub fn load_record(mut self, record: StrategyRecord) -> Self {
        self.optimizer = self.optimizer.load_record(record.optimizer);
        self.scheduler = self.scheduler.load_record(record.schedule);
        self.generation = record.generation;
        self.settings = record.settings;
        self
    }

    /// Noise scale of the population that [`ask`](Self::ask) makes next.
    ///
    /// # Panics
    ///
    /// As [`ask`](Self::ask).
    pub fn sigma(&self) -> f64 {
        self.settings.sigma.unwrap_or_else(|| self.config.sigma.at(self.config.unroll_start(self.generation)))
    }

    /// Sets sigma from the next [`ask`](Self::ask) on, in place of the configured schedule; `None` returns to that. Part of the state:
    /// checkpoints have it, and replay logs of `eggroll-run` make the same updates again.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if sigma is not positive or f32 cannot hold it, or if an unroll horizon has begun and not ended.
    pub fn set_sigma(&mut self, sigma: impl Into<Option<f64>>) -> Result<(), Error> {
        let settings = RunningSettings { sigma: sigma.into(), ..self.settings };
        settings.validate()?;
        if let Some(horizon) = self.config.unroll_horizon.filter(|horizon| !self.generation.is_multiple_of(*horizon)) {
            return Err(ConfigError::SigmaWithinHorizon { generation: self.generation, horizon }.into());
        }
        self.settings = settings;
        Ok(())
    }

    /// Sets the learning rate from the next [`ask`](Self::ask) on, in place of the configured schedule, which proceeds unseen; `None`
    /// returns to it. Part of the state, as [`set_sigma`](Self::set_sigma) is.
    ///
    /// # Errors
    ///
    /// [`ConfigError::LearningRate`] if the rate is negative or f32 cannot hold it.
    pub fn set_learning_rate(&mut self, learning_rate: impl Into<Option<f64>>) -> Result<(), Error> {
        let settings = RunningSettings { learning_rate: learning_rate.into(), ..self.settings };
        settings.validate()?;
        self.settings = settings;
        Ok(())
    }

    /// What [`set_sigma`](Self::set_sigma) and [`set_learning_rate`](Self::set_learning_rate) have set for the next generation.
    pub fn settings(&self) -> RunningSettings {
        self.settings
    }

    /// What was set when the population of the generation told last was asked for.
    pub fn told_settings(&self) -> RunningSettings {
        self.told
    }

    /// Sets both, as a record of another run has them.
    ///
    /// # Errors
    ///
    /// As [`set_sigma`](Self::set_sigma) and [`set_learning_rate`](Self::set_learning_rate), within an unroll horizon too.
    pub fn set_settings(&mut self, settings: RunningSettings) -> Result<(), Error> {
        settings.validate()?;
        self.settings = settings;
        Ok(())
    }

    /// Updates the model by one generation: estimates the gradient from the fitness and lets the optimizer step. The updated model is
    /// the mean of the next population. If all fitness values are equal the model stays as it is, bit for bit.
    ///
    /// # Errors
    ///
    /// [`TellError`](crate::TellError): `FitnessLength`, `Generation` or `OtherModel` if the arguments do not belong together;
    /// `NeverPerturbed` if the evaluation left out a parameter that is not frozen; `PairWeight` if the fitness is too large for the
    /// estimate; `Sigma` or `LearningRate` if a schedule gives a number that f32 cannot hold. Strategy and model are unchanged then.
    pub fn tell<M: Module>(
        &mut self,
        model: &mut M,
        population: Population,
        fitness: Fitness,
    ) -> Result<GenerationReport, Error> {
        self.tell_observed(model, population, fitness, |_, _| {})
    }

    /// [`tell`](Self::tell), with the model before the step and its gradient, if there is one, shown to `observe`.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn tell_observed<M: Module>(
        &mut self,
        model: &mut M,
        population: Population,
        fitness: Fitness,
        observe: impl FnOnce(&M, Option<&GradientsParams>),
    ) -> Result<GenerationReport, Error> {
        let gradients = self.gradient(model, &population, &fitness)?;
        let (scheduler, learning_rate) = self.next_rate(&population)?;
        observe(model, gradients.as_ref());
        let report = self.complete(scheduler, learning_rate.base(), &population, &fitness, gradients.is_some());
        if let Some(gradients) = gradients {
            let span = profile::span(Component::Optimizer, 0);
            // Tensors are shared, not copied.
            let stepped = self.optimizer.step(learning_rate.clone(), model.clone(), gradients);
            let signs = fitness.pair_signs(self.config.population_size);
            *model = votes::step(stepped, &population, &signs, &mut self.optimizer, learning_rate);
            span.end_waiting(|| model.devices().iter().for_each(|device| drop(device.sync())));
        }
        Ok(report)
    }

    /// Completes a generation whose step the program has made itself, with its own optimizer on the
    /// [gradient](Self::gradient): generation and learning-rate schedule advance, and the configured optimizer is not used.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell), but for what depends on the model; [`TellError::Votes`](crate::TellError::Votes) if integer parameters are
    /// trained.
    ///
    /// # Example
    ///
    /// The step of signSGD, `θ ← θ − η·sign(G)`:
    ///
    /// ```
    /// use burn::module::{Module, ModuleMapper, Param};
    /// use burn::optim::{GradientsParams, SgdConfig};
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// struct SignStep {
    ///     gradients: GradientsParams,
    ///     rate: f64,
    /// }
    ///
    /// impl ModuleMapper for SignStep {
    ///     fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
    ///         match self.gradients.remove::<D>(param.id) {
    ///             Some(gradient) => param.map(|value| value - gradient.sign() * self.rate),
    ///             None => param,
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = LinearConfig::new(2, 1).init(&device);
    /// let x = Tensor::<2>::ones([1, 2], &device);
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()); // its optimizer has no part in this
    /// let mut strategy = config.with_population_size(64).try_init(&model)?;
    /// for _ in 0..100 {
    ///     let population = strategy.ask();
    ///     let fitness = population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square()));
    ///     if let Some(gradients) = strategy.gradient(&model, &population, &fitness)? {
    ///         model = model.map(&mut SignStep { gradients, rate: 0.01 });
    ///     }
    ///     strategy.advance(population, &fitness)?;
    /// }
    /// let error: f32 = (model.forward(x) - 1.0).abs().into_scalar();
    /// assert!(error < 0.1, "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance(&mut self, population: Population, fitness: &Fitness) -> Result<GenerationReport, Error> {
        self.check_generation(&population, fitness)?;
        let trained = |entry: &&ParameterEntry| entry.kind == ParameterKind::Integer && entry.role != Role::Frozen;
        if let Some(entry) = self.table.entries().iter().find(trained) {
            return Err(TellError::Votes(entry.path.clone()).into());
        }
        let (scheduler, learning_rate) = self.next_rate(&population)?;
        let stepped = self.config.pair_weights(fitness, population.perturbation.sigma).is_some();
        Ok(self.complete(scheduler, learning_rate.base(), &population, fitness, stepped))
    }

    fn complete(
        &mut self,
        scheduler: ModuleLrScheduler,
        learning_rate: f64,
        population: &Population,
        fitness: &Fitness,
        stepped: bool,
    ) -> GenerationReport {
        let sigma = population.perturbation.sigma;
        let report = GenerationReport::new(self.generation, fitness, sigma, learning_rate, stepped);
        self.scheduler = scheduler;
        self.report = Some(report);
        self.told = population.settings;
        self.member_bytes = population.member_bytes.load(std::sync::atomic::Ordering::Relaxed);
        self.generation += 1;
        report
    }

    /// The schedule after one more generation, and the learning rate of this one.
    fn next_rate(&self, population: &Population) -> Result<(ModuleLrScheduler, ModuleLearningRate), TellError> {
        let mut scheduler = self.scheduler.clone();
        let scheduled = scheduler.step();
        let learning_rate = population.settings.learning_rate.map_or(scheduled, ModuleLearningRate::from);
        let rate = learning_rate.base();
        if !(0.0..=f64::from(f32::MAX)).contains(&rate) {
            return Err(TellError::LearningRate { generation: self.generation, rate });
        }
        Ok((scheduler, learning_rate))
    }
}

/// What `load` returns, or the text of its panic.
fn caught<T>(load: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(load)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
    })
}

/// Refuses float parameters that are trained.
fn refuse_floats(table: &ParameterTable) -> Result<(), ConfigError> {
    let trained = |entry: &&ParameterEntry| entry.kind == ParameterKind::Float && entry.role != Role::Frozen;
    match table.entries().iter().find(trained) {
        Some(entry) => Err(ConfigError::FloatParameter(entry.path.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
