//! Fine-tuning of pretrained language models: the model, its strategy and its tokenizer in one place.

mod checks;
mod config;
mod episodes;
mod members;
mod parts;
mod report;
mod steps;
#[cfg(feature = "learner")]
mod task;
mod written;

pub use config::FinetuneConfig;
pub use episodes::Episode;
pub use report::{Completion, StepReport};
pub use steps::Lesson;
#[cfg(feature = "learner")]
pub use task::Lessons;
pub use written::{Questions, WrittenLesson};

use crate::causal::CausalModel;
use crate::error::Error;
use crate::host::Decoder;
use crate::items::Item;
use crate::load::{ChatTemplate, Message, Pretrained, SavedDtype, Tokenizer, save_model};
use crate::reward::Prompt;
use crate::sampling::SamplingConfig;
use crate::scoring::{Scored, score};
use burn::tensor::Device;
use eggroll_run::{
    ReplayLog, SavedError, UserError, Verified, VerifyConfig, difference, replay_evaluated, replay_from, replay_range,
    verify,
};
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, Population};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;

/// A pretrained language model that is being fine-tuned.
///
/// A step asks all members the same prompts or examples, scores what they answer, and moves the model:
/// [`learn`](Self::learn) for completions that are given, [`learn_from`](Self::learn_from) for a [`Reward`](crate::reward::Reward) of what
/// the members write. The mean of the members, [`model`](Self::model), is a Burn module with float32 weights; members run on a copy of it
/// on the host, packed in the [precision](FinetuneConfig::precision) of the configuration.
///
/// # Example
///
/// ```no_run
/// use eggroll_lm::load::{Pretrained, SavedDtype};
/// use eggroll_lm::reward::Prompt;
/// use eggroll_lm::{FinetuneConfig, Llama, SamplingConfig};
///
/// # fn main() -> Result<(), eggroll_lm::Error> {
/// let mut finetune = FinetuneConfig::new().init::<Llama>(Pretrained::open("SmolLM2-135M-Instruct")?)?;
/// let prompts = [finetune.chat("What is the capital of France?")?, finetune.chat("What is 12 times 7?")?];
/// let brief = |_: &Prompt, completion: &str| -(completion.len() as f32);
/// for _ in 0..20 {
///     println!("{}", finetune.learn_from(&brief, &prompts, &SamplingConfig::greedy(40))?);
/// }
/// println!("{}", finetune.complete(&prompts[..1], &SamplingConfig::greedy(40))?[0].text);
/// finetune.save("brief", SavedDtype::BF16)?;
/// # Ok(())
/// # }
/// ```
pub struct Finetune<M: CausalModel> {
    config: FinetuneConfig,
    model: M,
    host: M::Host,
    strategy: EvolutionStrategy,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    log: Option<ReplayLog>,
    /// Steps so far: inside a run of the learner the strategy is the run's.
    steps: u64,
}

/// What [`Finetune::verify`] has looked at; nothing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Steps of the log.
    pub steps: u64,
    /// Members that were asked again, of all steps.
    pub evaluated: u64,
    /// Members of all steps.
    pub members: u64,
}

impl FinetuneConfig {
    /// Loads the weights and makes the strategy.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] for weights that are missing, do not fit or are not finite; [`Error::Train`] for invalid settings.
    pub fn init<M: CausalModel>(self, pretrained: Pretrained) -> Result<Finetune<M>, Error> {
        let Pretrained { config, weights, tokenizer, chat_template } = pretrained;
        let model = M::load(&config, &weights, &Device::flex())?;
        self.init_with(model, tokenizer, chat_template)
    }

    /// [`init`](Self::init) with a model that is loaded already.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    pub fn init_with<M: CausalModel>(
        self,
        model: M,
        tokenizer: Tokenizer,
        template: Option<ChatTemplate>,
    ) -> Result<Finetune<M>, Error> {
        let strategy = self.strategy::<M>().try_init(&model)?;
        let host = model.to_host(self.precision);
        Ok(Finetune { config: self, model, host, strategy, tokenizer, template, log: None, steps: 0 })
    }
}

impl<M: CausalModel> Finetune<M> {
    /// Takes another strategy, before the first step: other noise, roles, optimizer or shaping. Members whose noise is not of low rank on
    /// the model's matrices are packed one after the other, which takes much longer.
    ///
    /// # Errors
    ///
    /// [`Error::Train`] for invalid settings; [`Error::TooLate`] after a step or [`with_replay_log`](Self::with_replay_log).
    pub fn with_strategy(mut self, strategy: EvolutionStrategyConfig) -> Result<Self, Error> {
        self.check_fresh("with_strategy")?;
        self.strategy = strategy.try_init(&self.model)?;
        Ok(self)
    }

    /// Logs every step to a file of seeds and scores, a few bytes for each member, part and step, from which the fine-tuned model can be
    /// rebuilt of the pretrained one ([`replay`](eggroll_run::replay)). If the file is there, its steps are made again first, bit for bit. The log does not have
    /// the precision, the sampling, the prompts or the reward: keep them. Steps that have learned from the scores of tokens need what these were of:
    /// [`with_replay_log_of`](Self::with_replay_log_of).
    ///
    /// # Errors
    ///
    /// [`Error::OtherSettings`] for a log of a strategy with other settings; [`Error::Run`] if the file cannot be read or written, is
    /// damaged, is of another model, or has scores of tokens; [`Error::TooLate`] after a step or another log.
    pub fn with_replay_log(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        // From the strategy that is there: a log only names functions of the program, and its limits of memory are those of another run.
        self.with_log(path.as_ref(), |finetune, path| {
            replay_from(path, finetune.strategy.clone(), finetune.model.clone(), None)
        })
    }

    /// [`with_replay_log`](Self::with_replay_log) of the lessons of each step, from 0, that steps are made again with: all that is
    /// evaluated is the model and the first pair, whose scores are compared.
    ///
    /// # Errors
    ///
    /// As [`with_replay_log`](Self::with_replay_log) and [`step`](Self::step); [`Error::Run`] if the lessons are others.
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
                model.update_host(&mut finetune.host, &population.perturbation().table);
                Ok(finetune.ask_some(population, 0..2, &lesson(population.generation()))?.fitness)
            };
            replay_evaluated(path, strategy, model, None, again)
        })
    }

    /// Makes the steps of a log again, to which nothing is written, and evaluates a random share of its pairs ([`verify`]): whether the log, this model, the
    /// precision, the lessons and their rewards belong together. The model is the log's last one afterwards, or that of before if there is an error.
    ///
    /// # Errors
    ///
    /// As [`with_replay_log_of`](Self::with_replay_log_of), with what `lesson` returned.
    pub fn verify<'a>(
        &mut self,
        path: impl AsRef<Path>,
        config: &VerifyConfig,
        mut lesson: impl FnMut(u64) -> Result<Lesson<'a>, UserError>,
    ) -> Result<Verification, Error> {
        self.check_fresh("verify")?;
        let (strategy, first) = (self.strategy.clone(), self.model.clone());
        let mut host_is_of = strategy.generation();
        let ask = |model: &M, population: &Population, members: Range<usize>| {
            if host_is_of != population.generation() {
                host_is_of = population.generation();
                model.update_host(&mut self.host, &population.perturbation().table);
            }
            Ok(self.ask_some(population, members, &lesson(population.generation())?)?.fitness)
        };
        let verified = verify(path.as_ref(), strategy, first, config, ask).map_err(other_settings);
        let result = verified.map(|Verified { strategy, model, evaluated, members }| {
            (self.strategy, self.model) = (strategy, model);
            self.steps = self.strategy.generation();
            Verification { steps: self.steps, evaluated, members }
        });
        self.host = self.model.to_host(self.config.precision);
        result
    }

    /// Makes the steps of a log again, if it has any, and continues it.
    fn with_log(
        mut self,
        path: &Path,
        replay: impl FnOnce(&mut Self, &Path) -> Result<(EvolutionStrategy, M), eggroll_run::Error>,
    ) -> Result<Self, Error> {
        self.check_fresh("with_replay_log")?;
        if path.exists() && !replay_range(path)?.is_empty() {
            (self.strategy, self.model) = replay(&mut self, path).map_err(other_settings)?;
            self.host = self.model.to_host(self.config.precision);
            self.steps = self.strategy.generation();
        }
        self.log = Some(ReplayLog::open(path, &self.strategy, &self.model)?);
        Ok(self)
    }

    /// The model: the mean of the members.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The model as members run it.
    pub fn host(&self) -> &M::Host {
        &self.host
    }

    /// The strategy; in [`Lessons`](crate::Lessons) that of before the run, whose own is handed to them.
    pub fn strategy(&self) -> &EvolutionStrategy {
        &self.strategy
    }

    /// The strategy, to change its sigma or learning rate while it runs.
    pub fn strategy_mut(&mut self) -> &mut EvolutionStrategy {
        &mut self.strategy
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A user's message in the model's chat template, with the beginning of the answer; the message itself for a model without template.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the template cannot be rendered.
    pub fn chat(&self, message: impl Into<String>) -> Result<Prompt, Error> {
        match self.template {
            Some(_) => self.chat_messages(&[Message::user(message)]),
            None => Ok(Prompt::new(message)),
        }
    }

    /// A conversation in the model's chat template, with the beginning of the answer.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the template cannot be rendered; [`Error::NoTemplate`] for a model without one.
    pub fn chat_messages(&self, messages: &[Message]) -> Result<Prompt, Error> {
        let template = self.template.as_ref().ok_or(Error::NoTemplate)?;
        Ok(Prompt::new(template.render(messages, true)?))
    }

    /// The prompt with its question in the model's chat template, as [`chat`](Self::chat) writes it; opening, reference and facts stay.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the template cannot be rendered.
    pub fn in_chat(&self, prompt: Prompt) -> Result<Prompt, Error> {
        let question = self.chat(prompt.question.as_str())?.question;
        Ok(prompt.with_question(|_| question))
    }

    /// The tokens of a prompt, and of a completion to be scored. The tokenizer's begin token goes in front if the model expects one and the
    /// prompt does not begin with it, and in front of a completion without a prompt (the end token if there is no begin token).
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the tokenizer fails.
    pub fn item(&self, prompt: &str, completion: &str) -> Result<Item, Error> {
        let mut tokens = self.tokenizer.encode(prompt)?;
        // Chat templates write the begin token themselves. A completion without a prompt needs one token that it follows.
        let begin = match (self.tokenizer.bos(), self.tokenizer.adds_bos(), tokens.is_empty()) {
            (Some(bos), true, _) | (Some(bos), _, true) => Some(bos),
            (None, _, true) => self.tokenizer.eos().first().copied(),
            _ => None,
        };
        if let Some(begin) = begin.filter(|begin| tokens.first() != Some(begin)) {
            tokens.insert(0, begin);
        }
        Ok(Item::new(&tokens, &self.tokenizer.encode(completion)?))
    }

    /// Scores completions with the model as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] for no items, or items that do not fit the model.
    pub fn score(&self, items: &[Item]) -> Result<Vec<Scored>, Error> {
        Ok(score(&self.host, items)?)
    }

    /// `exp` of the mean negative log-probability of a text's tokens, read in windows of `window` tokens (at least 2, at most the model's
    /// context). The first token of each window is not predicted, a last window of one token is left out, and no begin token is added.
    ///
    /// # Errors
    ///
    /// [`Error::ShortText`] for a text of fewer than two tokens; [`Error::Load`] if the tokenizer fails.
    pub fn perplexity(&self, text: &str, window: usize) -> Result<f64, Error> {
        let tokens = self.tokenizer.encode(text)?;
        if tokens.len() < 2 {
            return Err(Error::ShortText { tokens: tokens.len() });
        }
        let window = window.min(self.host.context_length()).max(2);
        let parts = tokens.chunks(window).filter(|part| part.len() > 1);
        let items: Vec<Item> = parts.map(|part| Item::new(&part[..1], &part[1..])).collect();
        let scored = self.score(&items)?;
        let (sum, count) = scored
            .iter()
            .flat_map(|scored| &scored.log_probabilities)
            .fold((0.0, 0), |(sum, count), log_probability| (sum + f64::from(*log_probability), count + 1));
        Ok((-sum / count as f64).exp())
    }

    /// Continues prompts with the model as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] for prompts that do not fit the model, [`Error::Sampling`] for invalid settings, [`Error::NoNextToken`] if logits have
    /// no probabilities, [`Error::Load`] if the tokenizer fails.
    pub fn complete(&self, prompts: &[Prompt], sampling: &SamplingConfig) -> Result<Vec<Completion>, Error> {
        let items = self.prompts(prompts)?;
        let generated = crate::generation::generate(&self.host, &items, &self.stopping(sampling))?;
        if let Some(prompt) = generated.iter().position(|generated| !generated.finite) {
            return Err(Error::NoNextToken { prompt, tokens: generated[prompt].tokens.len() });
        }
        generated.iter().map(|generated| self.completion(generated)).collect()
    }

    /// Saves the model as a folder that Hugging Face's transformers reads: `model.safetensors`, `config.json`, the tokenizer.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if a file cannot be written; nothing is half written.
    pub fn save(&self, folder: impl AsRef<Path>, dtype: SavedDtype) -> Result<(), Error> {
        let config = self.model.model_config();
        Ok(save_model(folder, &config, &self.tokenizer, self.template.as_ref(), self.model.tensors(), dtype)?)
    }

    /// Refuses what would make the log one of another run.
    fn check_fresh(&self, call: &'static str) -> Result<(), Error> {
        let (steps, logged) = (self.steps(), self.log.is_some());
        if steps > 0 || logged { Err(Error::TooLate { call, steps, logged }) } else { Ok(()) }
    }

    fn prompts(&self, prompts: &[Prompt]) -> Result<Vec<Item>, Error> {
        prompts.iter().map(|prompt| self.item(&prompt.text(), "")).collect()
    }

    /// The settings, with the tokenizer's end tokens if no others are given.
    fn stopping(&self, sampling: &SamplingConfig) -> SamplingConfig {
        match sampling.stop.is_empty() {
            true => sampling.clone().with_stop(self.tokenizer.eos().iter().copied()),
            false => sampling.clone(),
        }
    }

    fn completion(&self, generated: &crate::generation::Generated) -> Result<Completion, Error> {
        let text = self.tokenizer.decode(&generated.tokens, true)?;
        Ok(Completion { text, tokens: generated.tokens.len(), stopped: generated.stopped })
    }
}

/// The first setting that differs, for a log that was begun with others.
fn other_settings(error: eggroll_run::Error) -> Error {
    let eggroll_run::Error::Saved(SavedError::ReplayConfig { logged, given, .. }) = &error else { return error.into() };
    let [expected, found] = [logged, given].map(|json| serde_json::from_str::<Value>(json).unwrap_or_default());
    match difference(&found, &expected) {
        Some((field, found, expected)) => Error::OtherSettings { field, found, expected },
        None => error.into(),
    }
}
