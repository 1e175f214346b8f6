//! Shakespeare, byte by byte: two blocks of a recurrence whose gates see the input only, 64 wide, on 16 windows of 32 bytes a step.

use crate::learn::Method;
use crate::task::{Batch, CreditTask, Hook, Network};
use burn::module::Module;
use burn::nn::Initializer;
use burn::optim::AdamWConfig;
use burn::tensor::{Device, Tensor};
use eggroll::core::ops::{gated_recurrence, gelu, rms_normalized};
use eggroll::core::scope::acts_later;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::{EggrollConfig, EvolutionStrategyConfig, NoiseScale, OptimizerConfig, cross_entropy};
use eggroll::run::text::{Alphabet, ByteStreams, Text, TextBatch};
use eggroll::train::MuonAdamWConfig;
use eggroll_examples::Failure;
use std::f64::consts::LOG2_E;
use std::path::Path;

const WIDTH: usize = 64;
const SEQUENCES: usize = 16;
const STEPS: usize = 32;
/// Windows that are judged by.
const JUDGED: usize = 256;

pub struct Shakespeare {
    train: ByteStreams,
    judged: Batch,
    tokens: usize,
    seed: u64,
}

/// `x + output(norm(recurrence(norm(x))))`, then `x + down(gelu(up(norm(x))))`.
#[derive(Module, Debug)]
struct Block {
    forget: Linear,
    candidate: Linear,
    output: Linear,
    up: Linear,
    down: Linear,
}

#[derive(Module, Debug)]
pub struct TextNet {
    embedding: Linear,
    blocks: Vec<Block>,
    head: Linear,
}

impl TextNet {
    fn new(tokens: usize, device: &Device) -> Self {
        let layer = |d_input: usize, d_output, std: f64| {
            let initializer = Initializer::Normal { mean: 0.0, std };
            LinearConfig::new(d_input, d_output).with_bias(false).with_initializer(initializer).init(device)
        };
        let narrow = |d_output| layer(WIDTH, d_output, (WIDTH as f64).powf(-0.5));
        let block = || Block {
            forget: narrow(WIDTH),
            candidate: narrow(WIDTH),
            output: narrow(WIDTH),
            up: narrow(4 * WIDTH),
            down: layer(4 * WIDTH, WIDTH, (4.0 * WIDTH as f64).powf(-0.5)),
        };
        Self { embedding: layer(tokens, WIDTH, 0.5), blocks: vec![block(), block()], head: narrow(tokens) }
    }
}

fn norm(x: Tensor<2>) -> Tensor<2> {
    rms_normalized(x, 1e-6)
}

impl Network for TextNet {
    /// `x` has a one in each row: the token's.
    fn logits(&self, x: Tensor<2>, hook: &mut Hook<'_>) -> Tensor<2> {
        let embedded = acts_later(|| self.embedding.forward_shared(x.clone()));
        let mut x = hook(&self.embedding, x, embedded);
        let mut apply = |layer: &Linear, x: Tensor<2>| hook(layer, x.clone(), layer.forward(x));
        let (sequences, device) = (x.dims()[0] / STEPS, x.device());
        let (kept, state) = (Tensor::ones([sequences, STEPS], &device), Tensor::zeros([sequences, WIDTH], &device));
        for block in &self.blocks {
            let z = norm(x.clone());
            let gates = [&block.forget, &block.candidate].map(|layer| acts_later(|| apply(layer, z.clone())));
            let [forget, candidate] = gates.map(|gate| gate.reshape([sequences, STEPS, WIDTH]));
            let states = gated_recurrence(forget, candidate, kept.clone(), state.clone());
            x = x + apply(&block.output, norm(states.flatten(0, 1)));
            let hidden = gelu(apply(&block.up, norm(x.clone())));
            x = x + apply(&block.down, hidden);
        }
        apply(&self.head, norm(x))
    }
}

impl Shakespeare {
    pub fn new(path: &Path, seed: u64, dev: bool) -> Result<Self, Failure> {
        let (mut train, mut judged) = Text::read(path)?.split(0.1)?;
        if dev {
            (train, judged) = train.split(0.1)?;
        }
        let alphabet = Alphabet::of(&train);
        let streams = |text: &Text, count| ByteStreams::new(alphabet.encode_text(text)?, count, STEPS);
        let tokens = alphabet.tokens();
        let judged = rows_of(streams(&judged, JUDGED)?.batch(0, 1, &Device::flex()), tokens);
        Ok(Self { train: streams(&train, SEQUENCES)?, judged, tokens, seed })
    }
}

fn rows_of(text: TextBatch, tokens: usize) -> Batch {
    let inputs = text.inputs.flatten::<1>(0, 1).one_hot(tokens).float();
    Batch { inputs, labels: text.targets.flatten(0, 1) }
}

impl CreditTask for Shakespeare {
    type Network = TextNet;

    const STEPS: usize = STEPS;

    fn network(&self) -> TextNet {
        Device::flex().seed(self.seed);
        TextNet::new(self.tokens, &Device::flex())
    }

    fn batch(&mut self, step: u64) -> Batch {
        rows_of(self.train.batch(step, 1, &Device::flex()), self.tokens)
    }

    fn evolution(&self) -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::new(EggrollConfig::new(), self.optimizer())
            .with_population_size(64)
            .with_noise_scale(NoiseScale::RelativeToSpread)
            .with_sigma(0.05)
    }

    fn optimizer(&self) -> OptimizerConfig {
        let others = AdamWConfig::new().with_beta_2(0.99).with_epsilon(1e-12);
        MuonAdamWConfig::new().with_others(others).into()
    }

    fn rate(&self, _method: Method) -> f64 {
        0.01
    }

    /// Bits per byte.
    fn judge(&self, network: &TextNet) -> Result<f64, Failure> {
        let losses = cross_entropy(network.forward(self.judged.inputs.clone()), self.judged.labels.clone());
        Ok(LOG2_E * losses.mean().into_scalar::<f64>())
    }
}
