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
/// The same of the few members that learn by token.
const TOKEN_CPU_CHUNK: usize = 4;
/// `--population` and `--layers` of a model that learns by token, without them: a score for every token says more of a member than more members do.
const TOKEN_POPULATION: usize = 64;
const TOKEN_LAYERS: usize = 2;
/// `--integer-rate` without one. By token it is for the 20,000 generations of ten minutes; fewer generations learn more from a higher rate. From
/// means the recurrent model and the transformer have separate rates.
const TOKEN_RATE: f64 = 0.2;
const MEAN_RATE: f64 = 1.0;
const TRANSFORMER_MEAN_RATE: f64 = 1.5;
/// Bytes of a generation from which on AdamW takes a small part of it.
const ADAM_W_BYTES: usize = 1 << 16;
/// `--alpha` without one.
const ALPHA: f64 = 4.0;
/// `--decay` without one, with votes.
const VOTES_DECAY: u64 = 5000;

impl CharLmSettings {
    /// Members that read the same stream; `None` where all members read all streams, and learn by token.
    pub fn groups(&self, own: &ModelSettings) -> Option<usize> {
        (!own.by_token()).then_some(self.group_size)
    }

    /// Streams of text that the population reads: one for each group of members, or the sequences that all members
    /// read.
    pub fn streams(&self, own: &ModelSettings) -> usize {
        self.groups(own).map_or(own.sequences, |size| self.population / size)
    }

    /// Sequences whose state is kept: of every member, or the sequences that all members read.
    pub fn states(&self, own: &ModelSettings) -> usize {
        if own.by_token() { own.sequences } else { self.population }
    }

    /// Members that are computed at a time, on a CPU or another device.
    pub fn chunk(&self, own: &ModelSettings, cpu: bool) -> usize {
        self.chunk.unwrap_or(match cpu {
            true if own.by_token() => TOKEN_CPU_CHUNK,
            true => CPU_CHUNK,
            false => self.population,
        })
    }

    pub fn integer_model(&self, vocab: usize) -> EggModelConfig {
        EggModelConfig::new().with_vocab(vocab).with_layers(self.layers).with_width(self.width).with_relu(true)
    }

    pub fn transformer(&self, own: &ModelSettings, vocab: usize) -> TransformerConfig {
        TransformerConfig::new()
            .with_vocab(vocab)
            .with_layers(self.layers)
            .with_width(self.width)
            .with_heads(own.heads)
            .with_context(own.context)
    }

    /// Fills in what an integer model learns from, and the size of what learns by token, where they were not given.
    pub fn fill_in_size(&mut self, own: &mut ModelSettings, given: &Given) {
        if !own.model.is_float() && own.credit == Credit::Auto {
            // A threshold cannot learn by token.
            let threshold = own.optimizer == Some(OptimizerName::Votes) || self.alpha.is_some();
            own.credit = if threshold { Credit::Mean } else { Credit::Parts };
        }
        if own.by_token() && !given.has("population") {
            self.population = TOKEN_POPULATION;
        }
        if own.by_token() && !given.has("layers") {
            self.layers = TOKEN_LAYERS;
        }
    }

    /// Fills in what was not given, and what depends on the model and the population: a run is continued with what it began with.
    pub fn fill_in(&mut self, own: &mut ModelSettings) {
        if own.model.is_float() {
            return;
        }
        let reads_little = self.population * self.seq < ADAM_W_BYTES;
        let default = if self.alpha.is_some() {
            OptimizerName::Votes
        } else if own.by_token() {
            OptimizerName::Muon
        } else if reads_little && own.integer_rate.is_none() {
            OptimizerName::Votes
        } else {
            OptimizerName::AdamW
        };
        let levels = if self.noise_table.is_some() { LevelsName::Three } else { LevelsName::Five };
        own.levels.get_or_insert(levels);
        match own.optimizer.get_or_insert(default) {
            OptimizerName::Votes => {
                self.alpha.get_or_insert(ALPHA);
                self.decay.get_or_insert(VOTES_DECAY);
            }
            OptimizerName::AdamW | OptimizerName::Muon => {
                own.integer_rate.get_or_insert(match own.model {
                    _ if own.by_token() => TOKEN_RATE,
                    ModelName::Transformer => TRANSFORMER_MEAN_RATE,
                    _ => MEAN_RATE,
                });
            }
        }
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
            OptimizerName::AdamW => EvolutionStrategyConfig::new(noiser, IntegerAdamWConfig::new()),
            OptimizerName::Muon => EvolutionStrategyConfig::new(noiser, IntegerMuonConfig::new()),
        };
        strategy
            .with_credit(if own.by_token() { own.credit } else { Credit::Mean })
            .with_population_size(self.population)
            .with_noise_source(source)
            .with_chunk_size(self.chunk(own, cpu))
            .with_seed(self.seed)
    }
}
