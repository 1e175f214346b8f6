//! The update of a generation.

use super::EvolutionStrategy;
use crate::error::{Error, TellError};
use crate::fitness::Fitness;
use crate::population::EstimatePlan;
use crate::population::Population;
use crate::report::GenerationReport;
use burn::lr_scheduler::module_lr_scheduler::{ModuleLearningRate, ModuleLrScheduler};
use burn::module::Module;
use burn::optim::GradientsParams;
use eggroll_core::ParameterKind;
use eggroll_core::profile::{self, Component};
use std::sync::atomic::Ordering::Relaxed;

impl EvolutionStrategy {
    /// Updates the model by one generation: estimates the gradient from the fitness, [transforms](crate::GradientTransform) it, lets the optimizer step, and
    /// [decays](crate::EvolutionStrategyConfig::with_anchor_decay) if so configured. With [master
    /// weights](crate::EvolutionStrategyConfig::with_master_weights), step and decay apply to these; the parameters are the rounded master weights. The updated
    /// model is the mean of the next population. If all fitness values are equal the model stays as it is, bit for bit. Tied fields stay equal, bit for bit
    /// ([identifiers](eggroll_core::ParameterTable#identifiers)).
    ///
    /// # Errors
    ///
    /// [`TellError`](crate::TellError), with strategy and model unchanged:
    /// - `FitnessLength`, `Generation`, `OtherModel` or `OtherValues` if the arguments do not belong together;
    /// - `NeverPerturbed` if the evaluation left out a parameter that is not frozen;
    /// - `PairWeight` if the fitness is too large for the estimate;
    /// - `Transform` if a transform changes lengths;
    /// - `Sigma` or `LearningRate` if a schedule gives a number that does not fit f32.
    ///
    /// [`TableError::Tied`](eggroll_core::TableError::Tied) if tied fields differ.
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
        let gradient = self.transformed(model, &population, &fitness)?;
        let (scheduler, learning_rate) = self.next_rate(&population)?;
        observe(model, gradient.as_ref().map(|gradient| &gradient.gradients));
        let report = self.complete(scheduler, learning_rate.base(), &population, &fitness, gradient.is_some());
        if let Some(gradient) = gradient {
            let span = profile::span(Component::Optimizer, 0);
            *model = self.chain.step(&self.config, model, gradient, learning_rate, (&population, &fitness));
            span.end_waiting(|| model.devices().iter().for_each(|device| drop(device.sync())));
        }
        Ok(report)
    }

    /// Completes a generation after the program's own step on the [gradient](Self::gradient): generation and learning-rate schedule advance. The configured
    /// optimizer and [anchor decay](crate::EvolutionStrategyConfig::with_anchor_decay) are not used, and [master
    /// weights](crate::EvolutionStrategyConfig::with_master_weights) do not change.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell), except for errors that depend on the model. [`TellError::Votes`](crate::TellError::Votes) if integer parameters are
    /// trained, [`TellError::Remembers`](crate::TellError::Remembers) if a [transform](crate::GradientTransform) has state, which only `tell` updates.
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
        if let Some((_, entry)) = self.table.trained(ParameterKind::Integer).next() {
            return Err(TellError::Votes(entry.path.clone()).into());
        }
        if let Some(name) = self.chain.remembering() {
            return Err(TellError::Remembers(name.to_owned()).into());
        }
        let (scheduler, learning_rate) = self.next_rate(&population)?;
        let by_part = self.plans(&population, fitness)?.iter().any(EstimatePlan::is_by_part);
        let stepped = self.config.weights(fitness, population.perturbation.sigma, by_part).is_some();
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
        self.member_bytes = population.member_bytes.load(Relaxed);
        self.rows = population.row_checks();
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
