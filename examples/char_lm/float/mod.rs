//! Language models in floats, whose weights learn from the loss of every token: `x = x + mix(norm(x))`, `x = x + mlp(norm(x))`.

mod attention;
mod recurrence;

pub use attention::Attention;
pub use recurrence::Recurrence;

use super::args::{CharLmSettings, ModelSettings};
use super::language_model::LanguageModel;
use burn::module::{Module, ModuleDisplay, Param};
use burn::nn::Initializer;
use burn::optim::AdamWConfig;
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::MemberState;
use eggroll::core::ops::{gelu, rms_normalized};
use eggroll::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll::run::diagnostics::IntegerStatistics;
use eggroll::run::text::{ByteModel, ByteStreams};
use eggroll::train::MuonAdamWConfig;
use std::f64::consts::LOG2_E;

/// The mean of Adam's squares is one of a hundred generations.
const BETA_2: f32 = 0.99;
/// Far below any estimate.
const EPSILON: f32 = 1e-12;

/// What mixes the steps of a sequence.
pub trait Mix: Module + ModuleDisplay + Sync {
    /// What `--model` calls it.
    const NAME: &'static str;
    /// What sequences remember of earlier tokens.
    type State: MemberState;
    /// The same as checkpoints save it.
    type Saved: Module + From<Self::State> + Into<Self::State>;

    fn new(settings: &CharLmSettings, own: &ModelSettings, device: &Device) -> Self;

    /// If a generation's sequences continue the sequences of the generation before.
    const CONTINUES: bool;

    /// Of so many blocks, before any token.
    fn initial_state(sequences: usize, layers: usize, width: usize, device: &Device) -> Self::State;

    /// The state of all members, who share it.
    fn repeated(state: &Self::State, members: &MemberChunk) -> Self::State;

    /// All blocks' mixing in one forward, `block(number, mixed)` being everything else.
    ///
    /// # Shapes
    ///
    /// - x: `[sequences, steps, width]`
    fn forward(model: &FloatModel<Self>, tokens: Tensor<2, Int>, state: Self::State) -> (Tensor<3>, Self::State);
}

#[derive(Module, Debug)]
pub struct ResidualBlock<M: Module> {
    pub mix: M,
    up: Linear,
    down: Linear,
}

impl<M: Module> ResidualBlock<M> {
    /// What follows the mixing: `x + mlp(norm(x))`.
    pub fn mlp(&self, x: Tensor<3>) -> Tensor<3> {
        x.clone() + self.down.forward(gelu(self.up.forward(norm(x))))
    }
}

#[derive(Module, Debug)]
pub struct FloatModel<M: Module> {
    pub embedding: Embedding,
    pub blocks: Vec<ResidualBlock<M>>,
    head: Linear,
}

/// `x/√(mean(x²) + ε)`, without a gain.
pub fn norm(x: Tensor<3>) -> Tensor<3> {
    rms_normalized(x, 1e-6)
}

/// A layer without a bias, of normal weights with a spread of `1/√d_input`.
pub fn linear(d_input: usize, d_output: usize, device: &Device) -> Linear {
    let initializer = Initializer::Normal { mean: 0.0, std: 1.0 / (d_input as f64).sqrt() };
    LinearConfig::new(d_input, d_output).with_bias(false).with_initializer(initializer).init(device)
}

impl<M: Mix> ByteModel for FloatModel<M> {
    type Kind = Float;
    type State = M::State;
    type LogLikelihood = Tensor<1>;
    const LOGIT_BITS: f64 = LOG2_E;

    fn device(&self) -> Device {
        self.head.weight.device()
    }

    fn initial_state(&self, sequences: usize) -> M::State {
        let [_, width] = self.embedding.weight.dims();
        M::initial_state(sequences, self.blocks.len(), width, &self.device())
    }

    fn forward(&self, tokens: Tensor<2, Int>, state: M::State) -> (Tensor<3>, M::State) {
        let (x, state) = M::forward(self, tokens, state);
        (self.head.forward(norm(x)), state)
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

impl<M: Mix> LanguageModel for FloatModel<M> {
    const NAME: &'static str = M::NAME;
    type Saved = M::Saved;

    fn new(settings: &CharLmSettings, own: &ModelSettings, vocab: usize, device: &Device) -> Self {
        let width = settings.width;
        let embedding =
            EmbeddingConfig::new(vocab, width).with_initializer(Initializer::Normal { mean: 0.0, std: 0.5 });
        let block = || ResidualBlock {
            mix: M::new(settings, own, device),
            up: linear(width, 4 * width, device),
            down: linear(4 * width, width, device),
        };
        Self {
            embedding: embedding.init(device),
            blocks: (0..settings.layers).map(|_| block()).collect(),
            head: linear(width, vocab, device),
        }
    }

    fn strategy(settings: &CharLmSettings, own: &ModelSettings, _cpu: bool) -> EvolutionStrategyConfig {
        let others = AdamWConfig::new().with_beta_2(BETA_2).with_epsilon(EPSILON);
        let optimizer = MuonAdamWConfig::new().with_others(others);
        let source = settings.noise_table.map_or(NoiseSourceConfig::OnTheFly, |len| NoiseSourceConfig::Table { len });
        let strategy = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(settings.rank), optimizer)
            .with_population_size(settings.population)
            .with_noise_scale(NoiseScale::RelativeToSpread)
            .with_sigma(own.sigma)
            .with_learning_rate(own.learning_rate)
            .with_noise_source(source)
            .with_credit(own.credit)
            .with_seed(settings.seed);
        match settings.chunk {
            Some(members) => strategy.with_chunk_size(members),
            None => strategy,
        }
    }

    fn evaluate_by_token(&self, population: &Population, streams: &ByteStreams, state: &mut M::State) -> Fitness {
        let batch = streams.batch(population.generation(), 1, &self.device());
        let fitness = population.evaluate(|members| {
            let tokens = members.repeat(batch.inputs.clone()); // [members · sequences, steps]
            let (logits, _) = self.forward(tokens, M::repeated(state, members));
            -members.token_cross_entropy(logits, batch.targets.clone())
        });
        if M::CONTINUES {
            *state = self.forward(batch.inputs, state.clone()).1;
        }
        fitness
    }

    /// Every step moves every weight.
    fn changed_share(_before: &Self, _after: &Self) -> Option<f64> {
        None
    }

    fn statistics(&self) -> Vec<IntegerStatistics> {
        Vec::new()
    }
}

/// Tensors as checkpoints save them.
#[derive(Module, Debug)]
pub struct SavedTensors {
    tensors: Vec<Param<Tensor<2>>>,
}

impl From<Vec<Tensor<2>>> for SavedTensors {
    fn from(tensors: Vec<Tensor<2>>) -> Self {
        Self { tensors: tensors.into_iter().map(Param::from_tensor).collect() }
    }
}

impl From<SavedTensors> for Vec<Tensor<2>> {
    fn from(saved: SavedTensors) -> Self {
        saved.tensors.iter().map(|tensor| tensor.val()).collect()
    }
}
