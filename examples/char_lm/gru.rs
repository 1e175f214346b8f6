//! A language model in floats, laid out as the integer one: embedding, blocks of a GRU and a feed-forward part, head.

use super::args::{ModelSettings, Settings};
use super::language_model::LanguageModel;
use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor};
use eggroll::nn::transformer::{PositionWiseFeedForward, PositionWiseFeedForwardConfig};
use eggroll::nn::{
    Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, MinimalGru, MinimalGruConfig,
};
use eggroll::prelude::*;
use eggroll::run::diagnostics::IntegerStatistics;
use eggroll::run::text::ByteModel;
use std::f64::consts::LOG2_E;

/// `x = x + GRU(norm(x))`, `x = x + feed_forward(norm(x))`
#[derive(Module, Debug)]
struct GruBlock {
    gru_norm: LayerNorm,
    gru: MinimalGru,
    mlp_norm: LayerNorm,
    mlp: PositionWiseFeedForward,
}

#[derive(Module, Debug)]
pub struct GruModel {
    embedding: Embedding,
    blocks: Vec<GruBlock>,
    norm: LayerNorm,
    head: Linear,
}

impl ByteModel for GruModel {
    type Kind = Float;
    type State = Vec<Tensor<2>>;
    type LogLikelihood = Tensor<1>;
    const LOGIT_BITS: f64 = LOG2_E;

    fn device(&self) -> Device {
        self.head.weight.device()
    }

    fn initial_state(&self, sequences: usize) -> Vec<Tensor<2>> {
        let [width, _] = self.head.weight.dims();
        self.blocks.iter().map(|_| Tensor::zeros([sequences, width], &self.device())).collect()
    }

    fn forward(&self, tokens: Tensor<2, Int>, state: Vec<Tensor<2>>) -> (Tensor<3>, Vec<Tensor<2>>) {
        let starts = tokens.clone().equal_elem(0).int();
        let mut x = self.embedding.forward(tokens); // [sequences, steps, width]
        let step = |(block, state): (&GruBlock, Tensor<2>)| {
            let (y, last) = block.gru.forward(block.gru_norm.forward(x.clone()), Some(state), Some(starts.clone()));
            x = x.clone() + y;
            x = x.clone() + block.mlp.forward(block.mlp_norm.forward(x.clone()));
            last
        };
        let state = self.blocks.iter().zip(state).map(step).collect();
        (self.head.forward(self.norm.forward(x)), state)
    }

    fn log_likelihood(logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<1> {
        let losses = cross_entropy(logits, targets);
        let rows = losses.dims()[0] / members;
        -losses.reshape([members, rows]).sum_dim(1).reshape([members])
    }

    fn exact_bits(logits: Tensor<2>, targets: Tensor<1, Int>) -> f64 {
        LOG2_E * cross_entropy(logits, targets).into_data().iter::<f64>().sum::<f64>()
    }
}

impl LanguageModel for GruModel {
    const NAME: &'static str = "gru";
    type Saved = SavedGruState;

    fn new(settings: &Settings, _own: &ModelSettings, vocab: usize, device: &Device) -> Self {
        let width = settings.width;
        let norm = || LayerNormConfig::new(width).init(device);
        let block = || GruBlock {
            gru_norm: norm(),
            gru: MinimalGruConfig::new(width, width).init(device),
            mlp_norm: norm(),
            mlp: PositionWiseFeedForwardConfig::new(width, 4 * width).init(device),
        };
        Self {
            embedding: EmbeddingConfig::new(vocab, width).init(device),
            blocks: (0..settings.layers).map(|_| block()).collect(),
            norm: norm(),
            head: LinearConfig::new(width, vocab).init(device),
        }
    }

    fn strategy(settings: &Settings, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig {
        // Held: every step of the recurrence uses the same noise.
        let source = settings.noise_table.map_or(NoiseSourceConfig::Cached, |len| NoiseSourceConfig::Table { len });
        EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(settings.rank), AdamConfig::new())
            .with_population_size(settings.population)
            .with_sigma(own.sigma)
            .with_learning_rate(own.learning_rate)
            .with_noise_source(source)
            .with_chunk_size(settings.chunk(cpu))
            .with_seed(settings.seed)
    }

    /// Every step moves every weight.
    fn changed_share(_before: &Self, _after: &Self) -> Option<f64> {
        None
    }

    fn statistics(&self) -> Vec<IntegerStatistics> {
        Vec::new()
    }
}

/// The state of sequences, layer by layer, as checkpoints save it.
#[derive(Module, Debug)]
pub struct SavedGruState {
    layers: Vec<Param<Tensor<2>>>,
}

impl From<Vec<Tensor<2>>> for SavedGruState {
    fn from(layers: Vec<Tensor<2>>) -> Self {
        Self { layers: layers.into_iter().map(Param::from_tensor).collect() }
    }
}

impl From<SavedGruState> for Vec<Tensor<2>> {
    fn from(saved: SavedGruState) -> Self {
        saved.layers.iter().map(|layer| layer.val()).collect()
    }
}
