//! Fine-tuning of pretrained language models: the model, its strategy and its tokenizer in one place.

mod checks;
mod config;
mod episodes;
mod logs;
mod members;
mod parts;
mod report;
mod steps;
#[cfg(feature = "learner")]
mod task;
mod written;

pub use config::FinetuneConfig;
pub use episodes::Episode;
pub use logs::Verification;
pub use report::{Completion, StepReport};
pub use steps::Lesson;
#[cfg(feature = "learner")]
pub use task::Lessons;
pub use written::{Questions, WrittenLesson};

use crate::causal::CausalModel;
use crate::error::Error;
use crate::host::Changed;
use crate::items::Item;
use crate::language_model::{LanguageModel, Scored};
use crate::load::{ChatTemplate, Message, Pretrained, SavedDtype, Tokenizer, save_model};
use crate::quantized::QuantizedLlama;
use crate::reward::Prompt;
use crate::sampling::SamplingConfig;
use crate::scoring::score;
use crate::tunable::{Tunable, follow};
use burn::tensor::Device;
use eggroll_core::ParameterTable;
use eggroll_run::ReplayLog;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig};
use std::path::Path;
use std::sync::OnceLock;

/// A pretrained language model that is being fine-tuned.
///
/// A step gives all members the same prompts or examples, scores their answers, and moves the model. [`learn`](Self::learn) takes given
/// completions; [`learn_from`](Self::learn_from) takes a [`Reward`](crate::reward::Reward) of the members' answers. The mean of the members,
/// [`model`](Self::model), is a Burn module with float32 weights; members run on a copy of it on the host, packed in the
/// [precision](FinetuneConfig::precision) of the configuration. Members of a [`Llama`](crate::Llama) that was loaded to another device
/// ([`init_with`](FinetuneConfig::init_with)) run there, on the model's own weights.
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
pub struct Finetune<M: Tunable> {
    config: FinetuneConfig,
    model: M,
    /// Packed when it is asked for; empty while the model has changed.
    host: OnceLock<M::Host>,
    strategy: EvolutionStrategy,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    log: Option<ReplayLog>,
    /// Steps so far: inside a run of the learner the strategy is the run's.
    steps: u64,
}

impl FinetuneConfig {
    /// Loads the weights and makes the strategy.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] for weights that are missing, do not fit or are not finite; [`Error::Train`] for invalid settings.
    pub fn init<M: Tunable>(self, pretrained: Pretrained) -> Result<Finetune<M>, Error> {
        let Pretrained { config, weights, tokenizer, chat_template } = pretrained;
        let (model, host) = M::open(&config, weights)?;
        self.init_of(model, host, (tokenizer, chat_template))
    }

    /// [`init`](Self::init) with a model that is loaded already, to any device: that of a [`Llama`](crate::Llama) is where its members run.
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
        self.init_of(model, OnceLock::new(), (tokenizer, template))
    }

    fn init_of<M: Tunable>(
        self,
        model: M,
        host: OnceLock<M::Host>,
        (tokenizer, template): (Tokenizer, Option<ChatTemplate>),
    ) -> Result<Finetune<M>, Error> {
        let config = self.strategy::<M>();
        model.check(&config)?;
        let strategy = config.try_init(&model)?;
        Ok(Finetune { config: self, model, host, strategy, tokenizer, template, log: None, steps: 0 })
    }
}

impl<M: Tunable> Finetune<M> {
    /// Takes another strategy, before the first step: other noise, roles, optimizer or shaping. Members whose noise is not of low rank on
    /// the model's matrices are packed one after the other, which takes much longer.
    ///
    /// # Errors
    ///
    /// [`Error::Train`] for invalid settings; [`Error::TooLate`] after a step or [`with_replay_log`](Self::with_replay_log).
    pub fn with_strategy(mut self, strategy: EvolutionStrategyConfig) -> Result<Self, Error> {
        self.check_fresh("with_strategy")?;
        self.model.check(&strategy)?;
        self.strategy = strategy.try_init(&self.model)?;
        Ok(self)
    }

    /// The model: the mean of the members.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The model on the host, as members run it unless they run on a device.
    pub fn host(&self) -> &M::Host {
        self.host.get_or_init(|| self.model.pack(self.config.precision))
    }

    /// The model as it runs without noise, and for members whose noise is of low rank.
    fn runner(&self) -> &dyn LanguageModel {
        self.model.on_device().unwrap_or_else(|| self.host())
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

    /// What stands between an answer of the model and its next one when `message` is replied, in the model's chat template: for [`Reward::reply`](crate::reward::Reward::reply).
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the template cannot be rendered, or does not show what the assistant has said; [`Error::NoTemplate`] for a model without one.
    pub fn chat_reply(&self, message: impl Into<String>) -> Result<String, Error> {
        // Stands for the answer; no template writes it.
        const ANSWER: &str = "\u{e000}answer\u{e001}";
        let messages = [Message::user("Hello"), Message::assistant(ANSWER), Message::user(message)];
        let dialogue = self.chat_messages(&messages)?.question;
        let (_, reply) = dialogue.rsplit_once(ANSWER).ok_or(Error::NoAnswersInTemplate)?;
        Ok(reply.to_owned())
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

    /// The tokens of a prompt, and of a completion to be scored. The tokenizer's begin token is put in front if the model expects one and
    /// the prompt does not begin with it. A completion without a prompt always gets one (the end token if there is no begin token).
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
        Ok(score(self.runner(), items)?)
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
        let window = window.min(self.runner().limits().context).max(2);
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
        let generated = crate::generation::generate(self.runner(), &items, &self.stopping(sampling))?;
        if let Some(prompt) = generated.iter().position(|generated| !generated.finite) {
            return Err(Error::NoNextToken { prompt, tokens: generated[prompt].tokens.len() });
        }
        items.iter().zip(&generated).map(|(prompt, generated)| self.completion(prompt, generated)).collect()
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

    fn completion(&self, prompt: &Item, generated: &crate::language_model::Generated) -> Result<Completion, Error> {
        let text = self.tokenizer.decode_after(prompt.prompt(), &generated.tokens)?;
        Ok(Completion { text, tokens: generated.tokens.len(), stopped: generated.stopped })
    }
}

impl<M: CausalModel> Finetune<M> {
    /// Takes another model over, which differs in these parameters or in any.
    fn take_model(&mut self, model: &M, changed: Option<&ParameterTable>) -> Changed {
        self.model = model.clone(); // tensors are shared
        follow(model, &mut self.host, changed)
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
}

impl Finetune<QuantizedLlama> {
    /// Runs the model and its members on a device from now on, over one copy of it. Matrices in Q8_0 and Q4_0 are int8 there, with their blocks' scales; all else is
    /// in the device's floats. Steps are made on the host, and the integers are copied again after each. A device of the host ends it.
    ///
    /// Activations are floats there, and 8-bit integers on the host: scores differ by that rounding. A matrix is in floats while it multiplies.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the file cannot be read.
    pub fn with_members_on(mut self, device: &Device) -> Result<Self, Error> {
        let host = self.host.get().expect("it was read with the model");
        self.model.copy_to(host, device)?;
        Ok(self)
    }

    /// Writes the model as the GGUF file that it was read from, each tuned matrix as [the model](QuantizedLlama) holds it: what llama.cpp reads. Metadata, tokenizer
    /// and all tensors that are not tuned are copied.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if a file cannot be read or written; nothing is half written.
    pub fn save_gguf(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(self.model.write_gguf(self.host(), path.as_ref())?)
    }
}
