//! Replay logs: a fine-tune as seeds and scores, continued or verified.

use super::{Finetune, Lesson};
use crate::causal::CausalModel;
use crate::error::Error;
use crate::tunable::Tunable;
use eggroll_run::{
    ReplayLog, SavedError, UserError, Verified, VerifyConfig, difference, replay_evaluated, replay_range, verify,
};
use eggroll_train::{EvolutionStrategy, Population};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;

/// The extent of a successful [`Finetune::verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Steps of the log.
    pub steps: u64,
    /// Members that were asked again, of all steps.
    pub evaluated: u64,
    /// Members of all steps.
    pub members: u64,
}

impl<M: Tunable> Finetune<M> {
    /// Logs every step to a file of seeds and scores, a few bytes for each member, part and step. From it and the pretrained model, the fine-tuned model can be
    /// rebuilt ([`replay`](eggroll_run::replay)). If the file exists, its steps are replayed first, bit for bit. The log does not have the precision, the
    /// sampling, the prompts or the reward: keep them. Steps that have learned from the scores of tokens also need their lessons:
    /// [`with_replay_log_of`](Self::with_replay_log_of).
    ///
    /// # Errors
    ///
    /// [`Error::OtherSettings`] for a log of a strategy with other settings. [`Error::Run`] if the file cannot be read or written, is
    /// damaged, belongs to another model, or has scores of tokens. [`Error::TooLate`] after a step or another log.
    pub fn with_replay_log(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        // Uses the existing strategy: a log only names functions of the program, and its memory limits belong to another run.
        self.with_log(path.as_ref(), |finetune, path| {
            finetune.model.replay(&mut finetune.host, path, finetune.strategy.clone())
        })
    }
}

impl<M: CausalModel> Finetune<M> {
    /// [`with_replay_log`](Self::with_replay_log) with the lesson of each step, from 0, for the replay. Only the model without
    /// noise and the first pair are evaluated; the pair's scores are compared.
    ///
    /// # Errors
    ///
    /// As [`with_replay_log`](Self::with_replay_log) and [`step`](Self::step); [`Error::Run`] if the lessons differ.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use eggroll_lm::load::Pretrained;
    /// use eggroll_lm::{FinetuneConfig, Items, Lesson, Llama};
    ///
    /// # fn main() -> Result<(), eggroll_lm::Error> {
    /// let finetune = FinetuneConfig::new().init::<Llama>(Pretrained::open("SmolLM2-135M-Instruct")?)?;
    /// let answers = [finetune.item("Two and two is", " four")?, finetune.item("Two and three is", " five")?];
    /// let lesson = |_: u64| Lesson::Completions(Items::Shared(&answers));
    /// let mut finetune = finetune.with_replay_log_of("sums.replay", lesson)?;
    /// while finetune.steps() < 20 {
    ///     finetune.step(&lesson(finetune.steps()))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_replay_log_of<'a>(
        self,
        path: impl AsRef<Path>,
        mut lesson: impl FnMut(u64) -> Lesson<'a>,
    ) -> Result<Self, Error> {
        self.with_log(path.as_ref(), |finetune, path| {
            let (strategy, model) = (finetune.strategy.clone(), finetune.model.clone());
            let again = |model: &M, population: &Population| {
                finetune.take_model(model, Some(&population.perturbation().table));
                Ok(finetune.ask_some(population, 0..2, &lesson(population.generation()))?.fitness)
            };
            let (strategy, model) = replay_evaluated(path, strategy, model, None, again)?;
            finetune.take_model(&model, None);
            Ok(strategy)
        })
    }

    /// Replays the steps of a log, without writing to it, and evaluates a random share of its pairs ([`verify`]). Checks that the log, this model, the
    /// precision, the lessons and their rewards belong together. Afterwards the model is the log's last one, or unchanged if there is an error.
    ///
    /// # Errors
    ///
    /// As [`with_replay_log_of`](Self::with_replay_log_of), with the error of `lesson`.
    pub fn verify<'a>(
        &mut self,
        path: impl AsRef<Path>,
        config: &VerifyConfig,
        mut lesson: impl FnMut(u64) -> Result<Lesson<'a>, UserError>,
    ) -> Result<Verification, Error> {
        self.check_fresh("verify")?;
        let (strategy, first) = (self.strategy.clone(), self.model.clone());
        let mut model_is_of = strategy.generation();
        let ask = |model: &M, population: &Population, members: Range<usize>| {
            if model_is_of != population.generation() {
                model_is_of = population.generation();
                self.take_model(model, Some(&population.perturbation().table));
            }
            Ok(self.ask_some(population, members, &lesson(population.generation())?)?.fitness)
        };
        let verified = verify(path.as_ref(), strategy, first.clone(), config, ask).map_err(other_settings);
        if verified.is_err() {
            self.take_model(&first, None);
        }
        let Verified { strategy, model, evaluated, members } = verified?;
        self.take_model(&model, None);
        self.strategy = strategy;
        self.steps = self.strategy.generation();
        Ok(Verification { steps: self.steps, evaluated, members })
    }
}

impl<M: Tunable> Finetune<M> {
    /// Replays the steps of a log, if it has any, and continues it.
    fn with_log(
        mut self,
        path: &Path,
        replay: impl FnOnce(&mut Self, &Path) -> Result<EvolutionStrategy, eggroll_run::Error>,
    ) -> Result<Self, Error> {
        self.check_fresh("with_replay_log")?;
        if path.exists() && !replay_range(path)?.is_empty() {
            self.strategy = replay(&mut self, path).map_err(other_settings)?;
            self.steps = self.strategy.generation();
        }
        self.log = Some(ReplayLog::open(path, &self.strategy, &self.model)?);
        Ok(self)
    }
}

/// The first setting that differs, for a log with other settings.
fn other_settings(error: eggroll_run::Error) -> Error {
    let eggroll_run::Error::Saved(SavedError::ReplayConfig { logged, given, .. }) = &error else { return error.into() };
    let [expected, found] = [logged, given].map(|json| serde_json::from_str::<Value>(json).unwrap_or_default());
    match difference(&found, &expected) {
        Some((field, found, expected)) => Error::OtherSettings { field, found, expected },
        None => error.into(),
    }
}
