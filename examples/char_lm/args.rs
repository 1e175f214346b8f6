//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::core::DeviceName;
use eggroll::core::integer::transformer::{MAX_NOISE_DEPTH, MAX_ROWS};
use eggroll::prelude::Credit;
use eggroll::run::text::{Alphabet, Sampler, Text};
use eggroll_examples::bounds::at_most;
use eggroll_examples::interrupt;
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::trace::TraceArgs;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Seconds of a run without `--seconds` and `--generations`.
const SECONDS: f64 = 600.0;

/// Trains a language model of bytes by evolution strategies, in integers only or in floats.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct CharLmArgs {
    /// Folder for checkpoints, logs and the curve.
    #[arg(long, default_value = "runs/char_lm")]
    pub out: PathBuf,
    /// Continue the run in --out; only --seconds and --generations may change.
    #[arg(long)]
    pub resume: bool,
    /// Print the cosine to expect of float estimates and the gradient, and end.
    #[arg(long)]
    pub forecast: bool,
    #[command(flatten)]
    pub observers: ObserverArgs,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub limits: CharLmLimits,
    #[command(flatten)]
    pub settings: CharLmSettings,
    #[command(flatten)]
    pub model: ModelSettings,
    /// Text samples to print at the end; one is drawn at every validation too.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1000))]
    pub samples: u64,
    /// Length of a sample in bytes.
    #[arg(long, default_value_t = 300, value_parser = at_most(1 << 20))]
    pub sample_bytes: usize,
    /// Temperature of samples; 0 takes the most likely byte.
    #[arg(long, default_value_t = 1.0)]
    pub temperature: f64,
    /// Min-p: least share of the most probable byte's probability.
    #[arg(long, default_value_t = 0.0)]
    pub min_p: f64,
    /// Bits off the logit of bytes in the prompt or sample so far.
    #[arg(long, default_value_t = 0.0)]
    pub presence_penalty: f64,
    /// Prompt of samples. Default: a line feed, or the text's first byte.
    #[arg(long)]
    pub prompt: Option<String>,
}

/// Training ends at the first limit that is reached. Without limits it ends after 600 seconds.
#[derive(clap::Args, Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CharLmLimits {
    /// Seconds of the run in total. Default: 600, if there is no limit.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Generations in total.
    #[arg(long)]
    pub generations: Option<u64>,
}

/// The settings of a run: saved with it.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub struct CharLmSettings {
    /// File to learn from; byte 0 starts a document. Default: Shakespeare.
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/text/shakespeare.txt"), hide_default_value = true)]
    pub data: PathBuf,
    /// Share of the file, at its end, held out for validation.
    #[arg(long, default_value_t = 0.1)]
    pub validation_share: f64,
    /// Held-out bytes that validation reads.
    #[arg(long, default_value_t = 1 << 20)]
    pub validation_bytes: usize,
    /// Generations between two lines of the table.
    #[arg(long, default_value_t = 200)]
    pub validate_every: u64,
    /// Generations between checkpoints; 0: one, at the end.
    #[arg(long, default_value_t = 1000)]
    pub checkpoint_every: u64,
    /// Width of the model.
    #[arg(long, default_value_t = 64, value_parser = at_most(1 << 13))]
    pub width: usize,
    /// Blocks of the model. Default: 2, with --credit mean 1.
    #[arg(long, default_value_t = 1, value_parser = at_most(1 << 10), hide_default_value = true)]
    pub layers: usize,
    /// Bytes that every member reads in a generation.
    #[arg(long, default_value_t = 32, value_parser = at_most(1 << 16))]
    pub seq: usize,
    /// Members, even. Default: 64; of integers with --credit mean, 4096.
    #[arg(long, default_value_t = 4096, value_parser = at_most(1 << 26), hide_default_value = true)]
    pub population: usize,
    /// With --credit mean: members that read the same bytes, even.
    #[arg(long, default_value_t = 2)]
    pub group_size: usize,
    /// Members in a chunk. Default: chosen by device and model.
    #[arg(long)]
    pub chunk: Option<usize>,
    /// Rank of the noise.
    #[arg(long, default_value_t = 1)]
    pub rank: usize,
    /// Noise scale of an integer model: 2^-shift.
    #[arg(long, default_value_t = 3)]
    pub sigma_shift: u32,
    /// Votes: share of moving weights; above 1 it falls to 2^-alpha. Default: 4.
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Generations until the rate is 0. Default: all; of --alpha's fall, 5000.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub decay: Option<u64>,
    /// The noise that counts in a vote: values or signs.
    #[arg(long, value_enum, default_value_t = VotesName::Values, hide_possible_values = true)]
    pub votes: VotesName,
    /// Take the noise from a table of this many bytes.
    #[arg(long, value_name = "BYTES", value_parser = at_most(1 << 30))]
    pub noise_table: Option<usize>,
    /// Seed of initial weights, noise and samples.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Which model is trained, and what only the float one has: saved with the run.
#[derive(clap::Args, Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ModelSettings {
    /// Model: integer (recurrent), transformer (int8), gru, float-transformer.
    #[arg(long, value_enum, default_value_t = Self::default().model, hide_possible_values = true)]
    pub model: ModelName,
    /// Attention heads of the transformer.
    #[arg(long, default_value_t = Self::default().heads, value_parser = at_most(1 << 10))]
    pub heads: usize,
    /// Context of the transformer in bytes, at most 2048.
    #[arg(long, default_value_t = Self::default().context, value_parser = at_most(1 << 11))]
    pub context: usize,
    /// Learn from counted numbers, "0 1 2 … 999 0 1 …", instead of --data.
    #[arg(long, conflicts_with = "data")]
    pub counting: bool,
    /// Tokens: text (the training text's bytes) or bytes (all 256).
    #[arg(long, value_enum, default_value_t = Self::default().alphabet, hide_possible_values = true)]
    pub alphabet: AlphabetName,
    /// Votes: sign, three (also 0) or five (also 2). Default: five; of tables three.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub levels: Option<LevelsName>,
    /// Default: muon; with --alpha votes; with --credit mean adam-w.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub optimizer: Option<OptimizerName>,
    /// Units that unanimous votes move a weight. Default: 0.2; by means 1 or 1.5.
    #[arg(long)]
    pub integer_rate: Option<f64>,
    /// Sequences that all members read; not with --credit mean.
    #[arg(long, default_value_t = Self::default().sequences, value_parser = at_most(1 << 16))]
    pub sequences: usize,
    /// Noise scale of a float model, in units of spreads.
    #[arg(long, default_value_t = Self::default().sigma)]
    pub sigma: f64,
    /// Learning rate of a float model; falls to 0 over the run.
    #[arg(long, default_value_t = Self::default().learning_rate)]
    pub learning_rate: f64,
    /// Losses: parts (of tokens), mean (of members) or auto.
    #[arg(long, default_value_t = Self::default().credit)]
    pub credit: Credit,
}

impl ModelSettings {
    /// Whether all members read the same sequences, and have a score for every token.
    pub fn by_token(&self) -> bool {
        self.model.is_float() || self.credit == Credit::Parts
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            model: ModelName::Integer,
            heads: 4,
            context: 32,
            counting: false,
            alphabet: AlphabetName::Text,
            levels: None,
            optimizer: None,
            integer_rate: None,
            sequences: 16,
            sigma: 0.05,
            learning_rate: 0.006,
            credit: Credit::Auto,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum ModelName {
    /// int8 recurrent model
    Integer,
    /// int8 transformer
    Transformer,
    /// Float minimal GRU updated by Muon
    Gru,
    /// Float causal transformer updated by Muon
    FloatTransformer,
}

impl ModelName {
    /// Whether the model is one in floats.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Gru | Self::FloatTransformer)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum OptimizerName {
    /// A weight moves by one where its vote reaches the threshold of --alpha and --decay
    Votes,
    /// AdamW adds up votes; a weight is its sum to the nearest (--integer-rate)
    AdamW,
    /// Muon does so for matrices, AdamW for vectors
    Muon,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum AlphabetName {
    /// The bytes of the training text, and any other byte as one more
    Text,
    /// All 256 bytes
    Bytes,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum LevelsName {
    /// 1 or −1, by which member is better
    Sign,
    /// 0 too, where the difference is small next to the mean of all pairs
    Three,
    /// Also 2 and −2, where it is large
    Five,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum VotesName {
    Values,
    Signs,
}

impl CharLmArgs {
    /// What draws a sample.
    pub fn sampler(&self, seed: u64) -> Result<Sampler, eggroll::run::Error> {
        Sampler::new(self.temperature, seed)?.with_min_p(self.min_p)?.with_presence_penalty(self.presence_penalty)
    }

    /// What samples continue.
    pub fn prompt<'a>(&'a self, train: &'a [u8]) -> &'a [u8] {
        match &self.prompt {
            Some(prompt) => prompt.as_bytes(),
            None if train.contains(&b'\n') => b"\n",
            None => &train[..1],
        }
    }

    /// Refuses samples that cannot be drawn, before training.
    pub fn validate(&self) -> Result<(), String> {
        self.sampler(0).map_err(|error| error.to_string())?;
        if self.prompt.as_ref().is_some_and(String::is_empty) {
            return Err("samples must continue something: the prompt is empty".into());
        }
        Ok(())
    }
}

impl ModelSettings {
    /// The tokens of a training text.
    pub fn alphabet(&self, train: &Text) -> Alphabet {
        match self.alphabet {
            AlphabetName::Text => Alphabet::of(train),
            AlphabetName::Bytes => Alphabet::all(),
        }
    }
}

impl CharLmLimits {
    /// Limits given anew in place of `self`.
    pub fn renewed(self, given: Self) -> Self {
        if given.seconds.is_none() && given.generations.is_none() { self } else { given }
    }

    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.generations.is_none() { SECONDS } else { f64::INFINITY })
    }

    pub fn generations(&self) -> u64 {
        self.generations.unwrap_or(u64::MAX)
    }
}

/// The most bytes of a forward of the float transformer, including the bytes that its windows see before.
const LONGEST: usize = 1 << 13;
/// Rounds of counted numbers.
const ROUNDS: usize = 100;

impl CharLmSettings {
    /// The text to learn from.
    pub fn text(&self, own: &ModelSettings) -> Result<Text, eggroll::run::Error> {
        if !own.counting {
            return Text::read(&self.data);
        }
        let round: String = (0..1000).map(|number| format!("{number} ")).collect();
        Text::from_bytes(round.repeat(ROUNDS).into_bytes())
    }

    /// Refuses what nothing else checks.
    pub fn validate(&self, own: &ModelSettings, limits: CharLmLimits) -> Result<(), String> {
        if matches!(own.model, ModelName::Transformer | ModelName::FloatTransformer) {
            let ModelSettings { heads, context, .. } = *own;
            let Self { width, rank, seq, .. } = *self;
            if heads == 0 || !width.is_multiple_of(2 * heads) {
                return Err(format!("the width {width} must be {heads} heads times an even size (--width, --heads)"));
            }
            if context == 0 {
                return Err("a context of 0 bytes predicts nothing (--context)".into());
            }
            if own.model == ModelName::Transformer && (4 * width * rank > MAX_NOISE_DEPTH || seq > MAX_ROWS) {
                return Err(format!(
                    "rank {rank} times four times the width {width} must be at most {MAX_NOISE_DEPTH}, and {seq} bytes of a member at most {MAX_ROWS} (--rank, --width, --seq)"
                ));
            }
        }
        if self.group_size == 0
            || !self.group_size.is_multiple_of(2)
            || !self.population.is_multiple_of(self.group_size)
        {
            let Self { group_size, population, .. } = self;
            return Err(format!(
                "groups of {group_size} members must be whole pairs and divide a population of {population}"
            ));
        }
        let seen = own.context.saturating_sub(1).saturating_mul(self.layers).saturating_add(self.seq);
        if own.model == ModelName::FloatTransformer && seen > LONGEST {
            return Err(format!(
                "{seen} bytes of context and sequence are more than the {LONGEST} of a forward (--context, --layers, --seq)"
            ));
        }
        if own.by_token() && (own.sequences == 0 || self.seq == 0) {
            let (sequences, seq) = (own.sequences, self.seq);
            return Err(format!("{sequences} sequences of {seq} bytes are nothing to learn from (--sequences, --seq)"));
        }
        let seconds = limits.seconds();
        if seconds.is_nan() || seconds < 0.0 {
            return Err(format!("a run cannot take {seconds} seconds"));
        }
        if !own.model.is_float() {
            match own.optimizer {
                Some(OptimizerName::Votes) if own.integer_rate.is_some() => {
                    return Err("--integer-rate does nothing with --optimizer votes".into());
                }
                Some(OptimizerName::AdamW | OptimizerName::Muon) if self.alpha.is_some() => {
                    return Err("--alpha sets the threshold of votes: it has no effect with another --optimizer".into());
                }
                None if own.integer_rate.is_some() && self.alpha.is_some() => {
                    return Err("--integer-rate is for optimizers, --alpha for the threshold of votes: give one of \
                     them"
                        .into());
                }
                _ => {}
            }
        }
        if self.width == 0 || self.validate_every == 0 || self.validation_bytes < 2 {
            let Self { width, validate_every, validation_bytes, .. } = self;
            return Err(format!(
                "width {width}, validate-every {validate_every} and validation-bytes {validation_bytes} must be at least 1, 1 and 2"
            ));
        }
        Ok(())
    }
}
