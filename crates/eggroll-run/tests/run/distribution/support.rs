//! A small network of fixed weights, its fitness, and a run of it.

use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::distribution::{Communicator, Distribution, DistributionError, Threads, on_devices};
use eggroll_run::*;
use eggroll_train::*;
use std::ops::ControlFlow;

/// Ten pairs: no multiple of three or four.
pub const MEMBERS: usize = 20;
pub const GENERATIONS: u64 = 6;

#[derive(Module, Debug)]
pub struct ReplicaNet {
    first: Linear,
    second: Linear,
}

impl ReplicaNet {
    pub fn new(scale: f32) -> Self {
        Self { first: layer(4, 6, scale), second: layer(6, 2, scale) }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(tanh(self.first.forward_shared(x)))
    }
}

fn layer(d_input: usize, d_output: usize, scale: f32) -> Linear {
    let weight = sines(d_input * d_output).reshape([d_input, d_output]) * scale;
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(sines(d_output) * 0.1)) }
}

pub fn sines(count: usize) -> Tensor<1> {
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_floats(&values[..], &Device::flex())
}

/// Three rows, so that they do not span the inputs.
pub fn score(net: &ReplicaNet, members: &MemberChunk) -> Tensor<1> {
    let x = sines(12).reshape([3, 4]);
    -members.mean((net.forward(x) - 0.5).square())
}

pub fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), AdamConfig::new())
        .with_population_size(MEMBERS)
        .with_seed(5)
}

/// The result of a run: the digest of its parameters.
pub type RunDigest = Result<String, Error>;

/// Runs the strategy as one replica, which evaluates as `evaluate` does.
pub fn run_with(
    config: &EvolutionStrategyConfig,
    distribution: &mut Distribution,
    evaluate: impl FnMut(&ReplicaNet, &Population) -> Result<Fitness, UserError>,
) -> RunDigest {
    let net = ReplicaNet::new(0.4);
    let mut strategy = config.try_init(&net)?;
    let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
    let net = TrainingLoop::new(GENERATIONS).run_distributed(distribution, &mut strategy, net, evaluate, go_on)?;
    Ok(parameter_digest(&net))
}

pub fn run(config: &EvolutionStrategyConfig, distribution: &mut Distribution) -> RunDigest {
    run_with(config, distribution, |net, population| Ok(population.evaluate(|members| score(net, members))))
}

/// The run of one process.
pub fn alone(config: &EvolutionStrategyConfig) -> String {
    run(config, &mut Distribution::default()).expect("a run")
}

/// What `replica` returns on each of `size` threads.
pub fn replicas<R: Send>(size: usize, replica: impl Fn(Threads) -> R + Sync) -> Vec<R> {
    on_devices(&vec![Device::flex(); size], |threads, _| replica(threads))
}

/// A rank whose messages are changed on their way, out or in.
pub struct Tampering<O, I> {
    pub inner: Threads,
    pub out: O,
    pub into: I,
}

impl<O: FnMut(&mut Vec<u32>) + Send, I: FnMut(&mut Vec<u32>) + Send> Communicator for Tampering<O, I> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        let mut words = words.to_vec();
        (self.out)(&mut words);
        let mut all = self.inner.all_gather(&words)?;
        (self.into)(&mut all);
        Ok(all)
    }
}
