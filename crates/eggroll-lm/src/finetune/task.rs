//! Fine-tuning as a run of the learner.

use super::steps::{Answers, Asked};
use super::{Finetune, Lesson, StepReport};
use crate::causal::CausalModel;
use crate::error::Error;
use crate::host::Changed;
use eggroll_core::ParameterTable;
use eggroll_run::{
    EsTask, EsTraining, EsTrainingConfig, Generation, ScalarMetric, Scalars, StopReason, UserError, difference,
};
use eggroll_train::{EvolutionStrategy, Fitness, GenerationReport, Population};

/// Metrics of training specific to language models.
const METRICS: [&str; 4] = ["Tokens per second", "Tied prompts", "Cut off", "Packed weights changed"];

/// The lessons of a run, and its validation.
pub trait Lessons<M: CausalModel> {
    /// The lesson of a generation: a function of its number, so a continued run has the same lessons.
    ///
    /// # Errors
    ///
    /// Any error ends the run, after a checkpoint; so do the other methods' errors.
    fn lesson(&mut self, generation: u64) -> Result<Lesson<'_>, UserError>;

    /// Called once, before the first step, or before the first new step of a continued run.
    fn begin(&mut self, _finetune: &Finetune<M>, _strategy: &EvolutionStrategy) -> Result<(), UserError> {
        Ok(())
    }

    /// Called before every generation, to [set the learning rate](EvolutionStrategy::set_learning_rate) for example.
    fn before_generation(
        &mut self,
        _finetune: &Finetune<M>,
        _strategy: &mut EvolutionStrategy,
    ) -> Result<(), UserError> {
        Ok(())
    }

    /// Called after every step.
    fn after_generation(&mut self, _report: &StepReport) -> Result<(), UserError> {
        Ok(())
    }

    /// Validates the model without noise, every [`validate_every`](EsTrainingConfig::validate_every) steps: the numbers are the run's metrics of
    /// validation.
    fn validate(&mut self, _finetune: &Finetune<M>, _report: &GenerationReport) -> Result<Scalars, UserError> {
        Ok(Scalars::default())
    }
}

impl<M: CausalModel> Finetune<M> {
    /// The configuration of a run of `steps` steps: with a replay log, from which a killed run continues after its last step, and without
    /// checkpoints. A checkpoint would hold all weights in float32. The precision is in its [settings](EsTrainingConfig::with_settings): a run does
    /// not continue with another.
    pub fn training_config(&self, steps: u64) -> EsTrainingConfig {
        let config = EsTrainingConfig::new(self.strategy.config().clone(), steps);
        let settings = serde_json::json!({ "precision": self.config.precision });
        config.with_replay_log(true).with_checkpoint_every(0).with_settings(settings)
    }

    /// Runs steps inside the [learner](EsTraining): with metrics, a report page, dashboard, early stopping, checkpoints, and exact resume, in the run's
    /// folder. Its metrics of training are the learner's and four more: "Tokens per second", "Tied prompts", "Cut off", "Packed weights changed". A run in
    /// the folder is continued. Afterwards the model is the tuned one, or unchanged if there is an error.
    ///
    /// With a [distribution](EsTraining::with_distribution), threads, MPI ranks or NATS nodes share the members of a step. Each calls this with the pretrained
    /// model from its own folder; digests are compared. They exchange only scores, and the model is the same, bit for bit, for any number of replicas. Lessons
    /// must be the same on all replicas, functions of the generation alone; so a learning rate must not follow a clock.
    ///
    /// # Errors
    ///
    /// [`Error::TooLate`] after a step or [`with_replay_log`](Self::with_replay_log), as the run makes both itself;
    /// [`Error::OtherStrategy`] for a run whose strategy has other settings; [`Error::Run`] as [`launch`](EsTraining::launch), with errors of the lessons.
    pub fn train<L: Lessons<M>>(&mut self, training: EsTraining, lessons: &mut L) -> Result<StopReason, Error> {
        self.check_fresh("train")?;
        if let Some((field, run, own)) = difference(&training.config().strategy, self.strategy.config()) {
            return Err(Error::OtherStrategy { field, run, own });
        }
        let training = METRICS.into_iter().fold(training, |all, name| all.metric_train(ScalarMetric::new(name)));
        let first = self.model.clone();
        let mut task = FinetuneTask { finetune: self, lessons, asked: None, table: None, done: None };
        let result = training.launch(first.clone(), &mut task);
        let done = task.done;
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                (self.steps, _) = (0, self.take_model(&first, None));
                return Err(error.into());
            }
        };
        self.strategy = outcome.strategy;
        // Replicas that only evaluate lag one step behind.
        if done != Some(self.strategy.generation()) {
            self.take_model(&outcome.model, None);
        }
        self.steps = self.strategy.generation();
        Ok(outcome.stop)
    }
}

/// A language model as the task of a run.
struct FinetuneTask<'a, M: CausalModel, L> {
    finetune: &'a mut Finetune<M>,
    lessons: &'a mut L,
    /// The members that this process has asked in the current generation.
    asked: Option<Asked>,
    /// The parameters that the run moves, once it has begun.
    table: Option<ParameterTable>,
    /// The generation of the host's model.
    done: Option<u64>,
}

impl<M: CausalModel, L> FinetuneTask<'_, M, L> {
    /// Notes that the host has the model of this generation.
    fn now_at(&mut self, generation: u64) {
        self.done = Some(generation);
        self.finetune.steps = generation;
    }
}

impl<M: CausalModel, L: Lessons<M>> EsTask<M> for FinetuneTask<'_, M, L> {
    type Output = Scalars;

    fn begin(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), UserError> {
        self.finetune.take_model(model, None);
        self.now_at(strategy.generation());
        self.table = Some(strategy.parameters().clone());
        self.lessons.begin(self.finetune, strategy)
    }

    fn before_generation(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<(), UserError> {
        self.asked = None;
        // The leading replica has it since `after_generation`.
        if self.done != Some(strategy.generation()) {
            self.finetune.take_model(model, Some(strategy.parameters()));
            self.now_at(strategy.generation());
        }
        self.lessons.before_generation(self.finetune, strategy)
    }

    fn evaluate(&mut self, _model: &M, population: &Population) -> Result<Fitness, UserError> {
        let lesson = self.lessons.lesson(population.generation())?;
        let Answers { fitness, asked } = self.finetune.ask_members(population, &lesson)?;
        // A replica may be given several slices.
        self.asked = Some(self.asked.map_or(asked, |before| asked.joined(before)));
        Ok(fitness)
    }

    fn evaluate_again(&mut self, model: &M, population: &Population) -> Result<Fitness, UserError> {
        self.finetune.take_model(model, Some(&population.perturbation().table));
        let lesson = self.lessons.lesson(population.generation())?;
        Ok(self.finetune.ask_some(population, 0..2, &lesson)?.fitness)
    }

    fn after_generation(&mut self, generation: &Generation<'_, M>) -> Result<Scalars, UserError> {
        let (report, times) = (generation.report, generation.times);
        let changed = match report.stepped {
            true => self.finetune.take_model(generation.model, self.table.as_ref()),
            false => Changed::default(),
        };
        self.now_at(report.generation + 1);
        let seconds = (times.ask + times.evaluate + times.tell).as_secs_f64();
        // Others may have asked all members.
        let asked = self.asked.take();
        let step = asked.unwrap_or_default().report(*report, seconds, changed);
        self.lessons.after_generation(&step)?;
        let of_asked = |number| asked.map(|_| number);
        let (tokens, tied) = (of_asked(step.tokens_per_second()), of_asked(step.tied_items));
        let numbers = [tokens, tied, step.truncated, step.changed.share()];
        Ok(METRICS.into_iter().zip(numbers).filter_map(|(name, number)| Some((name.to_owned(), number?))).collect())
    }

    fn validate(&mut self, _model: &M, report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        Ok(vec![self.lessons.validate(self.finetune, report)?])
    }

    /// Lessons are functions of the generation.
    fn continues_from_replay_log(&self) -> bool {
        true
    }
}
