//! The steps of a run: what happens around ask and tell.

use super::best_checkpoints::Kept;
use super::config::EsTrainingConfig;
use super::json::WriteFailure;
use super::machinery::{Ending, Machinery};
use super::metrics::{GenerationItem, Scalars, names};
use super::norms::{Norms, gradient_squares};
use super::rows::check_names;
use super::run_page::RunPage;
use super::task::{EsTask, Generation, Times, continues_from_log};
use crate::checkpoint::Checkpoints;
use crate::diagnostics::{InputStatistics, MemberStatistics, PairStatistics, SplitHalf, changed_share, diagnose};
use crate::error::{Error, RunError};
use crate::log::JsonLines;
use crate::steps::Steps;
use crate::terminal::Owner;
use crate::{print_line, print_note};
use burn::data::dataloader::Progress;
use burn::module::Module;
use burn::train::metric::ItemLazy;
use burn::train::{LearnerEvent, TrainingItem};
use eggroll_core::sync::locked;
use eggroll_train::{EvolutionStrategy, Fitness, FitnessShaping, GenerationReport, Population};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Share of the parameters' length above which a step looks too long.
const LONGEST_STEP: f64 = 0.1;

/// Names of the registered metrics.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// The user's metrics; once a run has started, the learner's too.
    pub train: Vec<String>,
    pub valid: Vec<String>,
}

impl Registered {
    /// Refuses a name without a metric.
    pub fn check(known: &[String], name: &str) -> Result<(), Error> {
        match known.iter().any(|known| known == name) {
            true => Ok(()),
            false => {
                let mut known = known.to_vec();
                known.sort();
                Err(RunError::UnknownMetric { name: name.to_owned(), known }.into())
            }
        }
    }

    /// Refuses a number of the task whose name the learner uses, or that no metric follows.
    pub fn check_number(&self, name: &str) -> Result<(), Error> {
        match names::ALL.contains(&name) {
            true => Ok(check_names(&[name.to_owned()], &[])?),
            false => Self::check(&self.train, name),
        }
    }
}

/// Data of a generation for its report.
#[derive(Debug, Default)]
pub(super) struct Pending {
    times: Times,
    fitness: Option<Fitness>,
    norms: Option<Norms>,
    split_half: Option<SplitHalf>,
    changed: Option<f64>,
    inputs: Vec<InputStatistics>,
}

/// A run in its machinery.
pub(super) struct Run<'a, T, V: ItemLazy + 'static> {
    pub task: &'a mut T,
    pub config: EsTrainingConfig,
    pub machinery: Machinery<V>,
    pub checkpoints: Checkpoints,
    /// The file of metrics.
    pub log: Arc<Mutex<JsonLines>>,
    pub kept: Option<Kept>,
    pub failure: WriteFailure,
    pub registered: Registered,
    pub floats: bool,
    pub integers: bool,
    /// The epoch that burn-train knows of.
    pub epoch: Option<u64>,
    /// The epoch after which early stopping has stopped.
    pub early: Option<u64>,
    pub warnings: Vec<String>,
    pub pending: Pending,
    /// Time of the last report, and the generations told by then.
    pub reported: (Instant, u64),
    pub page: RunPage,
    /// Whether no generation was told yet.
    pub begins: bool,
    /// The right to the terminal, which outlives its renderer.
    pub screen: Owner,
}

impl<T, V: ItemLazy + 'static> Run<'_, T, V> {
    /// Brings the strategies to their state after the completed epochs.
    pub fn replay(&mut self, epochs: u64) {
        let store = &self.machinery.store;
        if let Some(kept) = &mut self.kept {
            kept.replay(epochs, store);
        }
        if let Some(strategy) = &mut self.machinery.early_stopping {
            for epoch in 1..=epochs {
                self.early = strategy.should_stop(epoch as usize, store).then_some(epoch);
            }
        }
    }

    /// Ends the run. Returns how it ended, the epoch of early stopping, and the warnings.
    pub fn finish(mut self) -> Result<(Ending, Option<u64>, Vec<String>), Error> {
        let ending = self.machinery.finish();
        self.page.finish();
        let failure = locked(&self.failure).take();
        failure.map_or(Ok((ending, self.early, self.warnings)), Err)
    }

    /// Whether model, σ and estimate are diagnosed in a generation.
    fn diagnoses(&self, generation: u64) -> bool {
        self.config.diagnostics && self.config.ends_epoch(generation)
    }

    /// The numbers of a generation, in addition to the task's.
    fn numbers(&mut self, report: &GenerationReport, fitness: &Fitness, population: usize, numbers: &mut Scalars) {
        let done = report.generation + 1;
        let (start, from) = std::mem::replace(&mut self.reported, (Instant::now(), done));
        let evaluations = (done - from) as f64 * population as f64;
        let mut all = vec![
            (names::FITNESS_MEAN, report.fitness_mean),
            (names::FITNESS_BEST, report.fitness_best),
            (names::FITNESS_WORST, report.fitness_worst),
            (names::NON_FINITE, report.non_finite as f64),
            (names::TIED_PAIRS, fitness.tied_pairs()),
            (names::EVALUATIONS, evaluations / start.elapsed().as_secs_f64()),
        ];
        if self.floats {
            all.extend([(names::SIGMA, report.sigma), (names::LEARNING_RATE, report.learning_rate)]);
        }
        if let Some(norms) = self.pending.norms {
            all.extend([(names::GRADIENT_NORM, norms.gradient), (names::UPDATE_NORM, norms.update)]);
            all.push((names::PARAMETER_NORM, norms.parameters));
        }
        all.into_iter().for_each(|(name, number)| numbers.insert(name, number));
    }

    /// Adds the results of a diagnosis to the numbers and returns its warnings.
    fn diagnose<M: Module>(
        &self,
        model: &M,
        report: &GenerationReport,
        (fitness, shaping): (&Fitness, &FitnessShaping),
        numbers: &mut Scalars,
    ) -> Vec<String> {
        let (pairs, diagnosis) = (PairStatistics::new(fitness), diagnose(model));
        let split_half = self.pending.split_half;
        let found = [
            (names::CURVATURE, Some(pairs.curvature_to_slope()).filter(|ratio| ratio.is_finite())),
            (names::BAD_VALUES, Some(diagnosis.non_finite() as f64)),
            (names::SATURATED, diagnosis.saturated().filter(|_| self.integers)),
            (names::ENTROPY, diagnosis.entropy().filter(|_| self.integers)),
            (names::CHANGED, self.pending.changed),
            (names::CORRELATION, split_half.map(|split| split.correlation)),
            (names::SIGNAL, split_half.map(|split| split.signal_to_noise())),
        ];
        found.into_iter().filter_map(|(name, number)| Some((name, number?))).for_each(|(n, v)| numbers.insert(n, v));

        let mut warnings = diagnosis.warnings();
        warnings.extend(self.pending.inputs.iter().flat_map(InputStatistics::warnings));
        warnings.extend(MemberStatistics::new(fitness, self.floats.then_some(shaping)).warnings());
        if self.floats {
            warnings.extend(pairs.hints(report.sigma));
        }
        if let Some(Norms { update, parameters, .. }) = self.pending.norms
            && update > LONGEST_STEP * parameters
        {
            let share = 100.0 * update / parameters;
            let rate = report.learning_rate;
            warnings.push(format!(
                "the learning rate may be too large: at {rate}, a step is {share:.1} % as long as the parameters. Lower it"
            ));
        }
        warnings
    }

    /// Keeps new warnings, by subject, and prints them.
    fn warn(&mut self, warnings: &[String]) {
        let subject = |warning: &str| warning.split(':').next().unwrap_or_default().to_owned();
        for warning in warnings {
            if self.warnings.iter().all(|earlier| subject(earlier) != subject(warning)) {
                self.warnings.push(warning.clone());
                print_note!("warning: {warning}");
            }
        }
    }

    /// Hands a generation to the metrics.
    fn process(&mut self, report: &GenerationReport, numbers: Scalars, warnings: &[String]) {
        let epoch = self.config.epoch(report.generation);
        let [length, processed] = [self.config.length(epoch), report.generation + 1 - self.config.start(epoch)];
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            let [epoch_number, total_items] = [epoch, length].map(|n| n as usize);
            self.machinery.train(LearnerEvent::StartSplit { epoch_number, total_items });
        }
        let mut texts = BTreeMap::from([(names::GENERATION, report.generation.to_string())]);
        texts.insert(names::WARNINGS, warnings.join("; "));
        let item = GenerationItem { numbers, texts: Arc::new(texts) };
        let progress = Progress::new(processed as usize, length as usize, Some("generations".to_owned()));
        let iteration = Some(report.generation as usize + 1);
        let item = TrainingItem::new(item, progress, iteration, Some(report.learning_rate.into()));
        self.machinery.train(LearnerEvent::ProcessedItem(item));
    }

    /// Validates and lets the strategies decide.
    fn end_epoch<M: Module>(
        &mut self,
        strategy: &EvolutionStrategy,
        model: &M,
        report: &GenerationReport,
    ) -> Result<(), Error>
    where
        T: EsTask<M, Output = V>,
    {
        let (start, epoch) = (Instant::now(), self.config.epoch(report.generation));
        self.machinery.train(LearnerEvent::EndSplit(epoch as usize));
        let outputs = self.screen.aside(|| self.task.validate(model, report)).map_err(Error::User)?;
        if !outputs.is_empty() {
            self.process_validation(epoch as usize, outputs)?;
        }
        self.machinery.train(LearnerEvent::EndEpoch(epoch as usize));
        self.machinery.flush();
        let Self { task, machinery, kept, config, early, .. } = self;
        if let Some(kept) = kept {
            kept.end_epoch(epoch, config, &machinery.store, |checkpoints| task.save(checkpoints, strategy, model))?;
        }
        if let Some(stopping) = &mut machinery.early_stopping
            && stopping.should_stop(epoch as usize, &machinery.store)
        {
            *early = Some(epoch);
        }
        self.page.update(strategy.generation());
        // No evaluation of training.
        self.reported.0 += start.elapsed();
        Ok(())
    }

    /// Reports what parameters learn from and, with diagnostics, the expected quality of an estimate.
    fn begin<M: Module>(
        &mut self,
        strategy: &EvolutionStrategy,
        model: &M,
        population: &Population,
        fitness: &Fitness,
    ) -> Result<(), Error> {
        let credits = population.credits(fitness);
        let forecast = match self.config.diagnostics && self.floats {
            true => strategy.forecast(model, population, fitness)?,
            false => None,
        };
        self.page.began(&credits, forecast);
        if let Some(line) = credits.summary() {
            self.screen.aside(|| print_line!("{line}"));
        }
        Ok(())
    }

    /// Hands the outputs of a validation to the metrics.
    fn process_validation(&mut self, epoch: usize, outputs: Vec<V>) -> Result<(), Error> {
        let total = outputs.len();
        self.machinery.valid(LearnerEvent::StartSplit { epoch_number: epoch, total_items: total });
        for (output, batch) in outputs.into_iter().zip(1..) {
            if let Some(numbers) = (&output as &dyn Any).downcast_ref::<Scalars>() {
                numbers.names().try_for_each(|name| Registered::check(&self.registered.valid, name))?;
            }
            let progress = Progress::new(batch, total, Some("batches".to_owned()));
            self.machinery.valid(LearnerEvent::ProcessedItem(TrainingItem::new(output, progress, Some(batch), None)));
        }
        self.machinery.valid(LearnerEvent::EndSplit(epoch));
        Ok(())
    }
}

impl<M: Module, V: ItemLazy + 'static, T: EsTask<M, Output = V>> Steps<M> for Run<'_, T, V> {
    fn stopped(&self) -> bool {
        self.early.is_some() || self.machinery.interrupter.should_stop()
    }

    fn ask(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<Population, Error> {
        self.task.before_generation(strategy, model).map_err(Error::User)?;
        let start = Instant::now();
        let population = strategy.ask();
        self.pending = Pending { times: Times { ask: start.elapsed(), ..Times::default() }, ..Pending::default() };
        Ok(population)
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Option<Fitness>, Error> {
        let start = Instant::now();
        let looks = self.floats && self.diagnoses(population.generation());
        if looks {
            population.observe_inputs();
        }
        let fitness = self.task.evaluate(model, population).map_err(Error::User)?;
        self.pending.inputs = if looks { InputStatistics::of_layers(population) } else { Vec::new() };
        self.pending.times.evaluate = start.elapsed();
        Ok(Some(fitness))
    }

    fn tell(
        &mut self,
        strategy: &mut EvolutionStrategy,
        model: &mut M,
        population: Population,
        fitness: Fitness,
    ) -> Result<(), Error> {
        let generation = population.generation();
        let reports = self.floats && self.config.reports(generation);
        let diagnoses = self.diagnoses(generation);
        if std::mem::take(&mut self.begins) {
            self.begin(strategy, model, &population, &fitness)?;
        }
        if diagnoses && self.floats {
            let halves = strategy.gradient_halves(model, &population, &fitness)?;
            self.pending.split_half = halves.and_then(|halves| SplitHalf::new(model, &halves));
        }
        let before = (reports || diagnoses).then(|| model.clone());
        self.pending.fitness = Some(fitness.clone());
        let start = Instant::now();
        let mut squares = None;
        strategy.tell_observed(model, population, fitness, |model, gradients| {
            squares = gradients.filter(|_| reports).and_then(|gradients| gradient_squares(model, gradients));
        })?;
        self.pending.times.tell = start.elapsed();
        if let Some(before) = before {
            self.pending.norms = if reports { Norms::read(squares, &before, model) } else { None };
            self.pending.changed = (diagnoses && self.integers).then(|| changed_share(&before, model));
        }
        Ok(())
    }

    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let report = strategy.report().expect("tell made a report");
        let fitness = &self.pending.fitness.take().expect("tell was told it");
        let generation = Generation { model, report, fitness, times: self.pending.times };
        let mut numbers = self.screen.aside(|| self.task.after_generation(&generation)).map_err(Error::User)?;
        numbers.names().try_for_each(|name| self.registered.check_number(name))?;
        if self.config.reports(report.generation) {
            self.numbers(report, fitness, strategy.config().population_size, &mut numbers);
            let warnings = match self.diagnoses(report.generation) {
                true => self.diagnose(model, report, (fitness, &strategy.config().shaping), &mut numbers),
                false => Vec::new(),
            };
            self.warn(&warnings);
            self.process(report, numbers, &warnings);
        }
        if self.config.ends_epoch(report.generation) {
            self.end_epoch(strategy, model, report)?;
        }
        locked(&self.failure).take().map_or(Ok(()), Err)
    }

    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<Option<PathBuf>, Error> {
        // A log is never behind a checkpoint: lines are written by another thread.
        self.machinery.flush();
        locked(&self.log).sync()?;
        let saves = self.config.checkpoint_every > 0 || !continues_from_log(&self.config, self.task);
        let saved = saves.then(|| self.task.save(&self.checkpoints, strategy, model)).transpose()?;
        self.page.saved(strategy, model);
        Ok(saved)
    }
}
