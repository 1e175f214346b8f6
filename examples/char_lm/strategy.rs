//! The models and the evolution strategy that settings stand for.

use super::args::{CharLmSettings, LevelsName, ModelName, ModelSettings, OptimizerName, VotesName};
use eggroll::core::QEggrollConfig;
use eggroll::core::integer::{VoteLevels, Votes};
use eggroll::nn::integer::EggModelConfig;
use eggroll::nn::integer::transformer::TransformerConfig;
use eggroll::prelude::*;
use eggroll_examples::options::Given;

/// Members of a chunk on a CPU: small enough for a core's cache, and many chunks are shared out evenly.
const CPU_CHUNK: usize = 16;
/// `--population` of a model that learns by token, and `--layers` of a float model, without them: a score for every token says more of a member than
/// more members do.
const TOKEN_POPULATION: usize = 64;
const FLOAT_LAYERS: usize = 2;
/// Bytes of a generation from which on AdamW takes a small part of it.
const ADAM_W_BYTES: usize = 1 << 16;
/// `--alpha` without one.
const ALPHA: f64 = 4.0;
/// `--decay` without one, with votes and with AdamW.
const VOTES_DECAY: u64 = 5000;
const ADAM_W_DECAY: u64 = 2000;

impl CharLmSettings {
    /// Members that read the same stream; `None` where all members read all streams, and learn by token.
    pub fn groups(&self, own: &ModelSettings) -> Option<usize> {
        (!own.by_token()).then_some(self.group_size)
    }

    /// Streams of text that the population reads: one for each group of members, or those that all members read.
    pub fn streams(&self, own: &ModelSettings) -> usize {
        self.groups(own).map_or(own.sequences, |size| self.population / size)
    }

    /// Sequences whose state is kept: of every member, or those that all members read.
    pub fn states(&self, own: &ModelSettings) -> usize {
        if own.by_token() { own.sequences } else { self.population }
    }

    /// Members that are computed at a time, on a CPU or another device.
    pub fn chunk(&self, cpu: bool) -> usize {
        self.chunk.unwrap_or(if cpu { CPU_CHUNK } else { self.population })
    }

    pub fn integer_model(&self, vocab: usize) -> EggModelConfig {
        EggModelConfig::new().with_vocab(vocab).with_layers(self.layers).with_width(self.width)
    }

    pub fn transformer(&self, own: &ModelSettings, vocab: usize) -> TransformerConfig {
        TransformerConfig::new()
            .with_vocab(vocab)
            .with_layers(self.layers)
            .with_width(self.width)
            .with_heads(own.heads)
            .with_context(own.context)
    }

    /// Fills in the size of a float model, and the population of what learns by token, where they were not given.
    pub fn fill_in_size(&mut self, own: &ModelSettings, given: &Given) {
        if own.by_token() && !given.has("population") {
            self.population = TOKEN_POPULATION;
        }
        if own.model.is_float() && !given.has("layers") {
            self.layers = FLOAT_LAYERS;
        }
    }

    /// Fills in what was not given, and what depends on the model and the population: a run is continued with what it began with.
    pub fn fill_in(&mut self, own: &mut ModelSettings) {
        if own.model.is_float() {
            return;
        }
        let by_size = match self.population * self.seq >= ADAM_W_BYTES {
            _ if own.integer_rate.is_some() => OptimizerName::AdamW,
            _ if self.alpha.is_some() => OptimizerName::Votes,
            _ if own.by_token() => OptimizerName::AdamW, // a threshold cannot
            true => OptimizerName::AdamW,
            false => OptimizerName::Votes,
        };
        let levels = if self.noise_table.is_some() { LevelsName::Three } else { LevelsName::Five };
        own.levels.get_or_insert(levels);
        match own.optimizer.get_or_insert(by_size) {
            OptimizerName::Votes => {
                self.alpha.get_or_insert(ALPHA);
                self.decay.get_or_insert(VOTES_DECAY);
            }
            OptimizerName::AdamW => {
                own.integer_rate.get_or_insert(if own.model == ModelName::Transformer { 1.5 } else { 1.0 });
                self.decay.get_or_insert(ADAM_W_DECAY);
            }
        }
    }

    /// AdamW's rate in a generation.
    pub fn integer_rate(&self, own: &ModelSettings, generation: u64) -> f64 {
        let decay = self.decay.unwrap_or(ADAM_W_DECAY);
        own.integer_rate.unwrap_or(1.0) / (1.0 + generation as f64 / decay as f64)
    }

    /// The strategy of the integer models, for a CPU or another device.
    pub fn integer_strategy(&self, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig {
        let noiser = QEggrollConfig::new()
            .with_rank(self.rank)
            .with_sigma_shift(self.sigma_shift)
            .with_threshold(self.alpha.unwrap_or(ALPHA), self.decay.unwrap_or(VOTES_DECAY))
            .with_levels(match own.levels.unwrap_or(LevelsName::Five) {
                LevelsName::Sign => VoteLevels::Sign,
                LevelsName::Three => VoteLevels::Three,
                LevelsName::Five => VoteLevels::Five,
            })
            .with_votes(match self.votes {
                VotesName::Values => Votes::Values,
                VotesName::Signs => Votes::Signs,
            });
        let source = self.noise_table.map_or(NoiseSourceConfig::OnTheFly, |len| NoiseSourceConfig::Table { len });
        let strategy = match own.optimizer.unwrap_or(OptimizerName::Votes) {
            OptimizerName::Votes => EvolutionStrategyConfig::integer(noiser),
            OptimizerName::AdamW => EvolutionStrategyConfig::new(noiser, IntegerAdamWConfig::new())
                .with_learning_rate(self.integer_rate(own, 0)),
        };
        strategy
            .with_credit(if own.by_token() { own.credit } else { Credit::Mean })
            .with_population_size(self.population)
            .with_noise_source(source)
            .with_chunk_size(self.chunk(cpu))
            .with_seed(self.seed)
    }
}
