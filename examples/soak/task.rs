//! Two small networks with something to learn: one of floats, one of integers.

use crate::args::SoakArgs;
use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use eggroll::core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll::core::rng::{fill_noise, integer::fill_integers};
use eggroll::core::{EggrollConfig, NoiseKey, QEggrollConfig};
use eggroll::nn;
use eggroll::train::{EvolutionStrategyConfig, Fitness, MemberChunk, Population};

const ROWS: usize = 32;
const INPUTS: usize = 16;
const HIDDEN: usize = 64;
const OUTPUTS: usize = 4;

/// A network and what it is to learn.
pub trait SoakTask: Module {
    const NAME: &'static str;
    fn new(device: &Device) -> Self;
    fn config() -> EvolutionStrategyConfig;
    fn fitness(&self, population: &Population, args: &SoakArgs, device: &Device) -> Fitness;
}

/// The address of a generation's rows: parameters of the models have smaller numbers.
fn rows(seed: u64, population: &Population) -> NoiseKey {
    NoiseKey::new(seed, NoiseKey::MAX_PARAMETERS - 1, population.generation() as u32)
}

#[derive(Module, Debug)]
pub struct Floats {
    hidden: nn::Linear,
    output: nn::Linear,
}

impl SoakTask for Floats {
    const NAME: &'static str = "floats";

    fn new(device: &Device) -> Self {
        Self {
            hidden: nn::LinearConfig::new(INPUTS, HIDDEN).init(device),
            output: nn::LinearConfig::new(HIDDEN, OUTPUTS).init(device),
        }
    }

    fn config() -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
    }

    /// To be learned: `tanh(x_j + x_{j+4})`.
    fn fitness(&self, population: &Population, args: &SoakArgs, device: &Device) -> Fitness {
        let mut values = vec![0.0; ROWS * INPUTS];
        fill_noise(rows(args.seed, population), 0, 0, &mut values);
        let x = Tensor::<2>::from_data(TensorData::new(values, [ROWS, INPUTS]), device);
        let target = activation::tanh(x.clone().narrow(1, 0, OUTPUTS) + x.clone().narrow(1, OUTPUTS, OUTPUTS));
        let score = |members: &MemberChunk| {
            let y = self.output.forward(activation::tanh(self.hidden.forward_shared(x.clone())));
            -members.mean((y - members.repeat(target.clone())).square())
        };
        population.evaluate(score)
    }
}

#[derive(Module, Debug)]
pub struct Integers {
    hidden: nn::integer::Linear,
    output: nn::integer::Linear,
}

impl SoakTask for Integers {
    const NAME: &'static str = "integers";

    fn new(device: &Device) -> Self {
        Self {
            hidden: nn::integer::LinearConfig::new(INPUTS, HIDDEN).init(device),
            output: nn::integer::LinearConfig::new(HIDDEN, OUTPUTS).init(device),
        }
    }

    fn config() -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::integer(QEggrollConfig::new())
    }

    /// To be learned: which of the first four inputs is the largest.
    fn fitness(&self, population: &Population, args: &SoakArgs, device: &Device) -> Fitness {
        let mut values = vec![0; ROWS * INPUTS];
        fill_integers(rows(args.seed, population), 0, &mut values);
        let largest = |row: &[i8]| (0..OUTPUTS).max_by_key(|i| row[*i]).unwrap_or_default() as i32;
        let targets: Vec<i32> = values.chunks(INPUTS).map(largest).collect();
        let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [ROWS]), device);
        let data = TensorData::new(values, [ROWS, INPUTS]);
        let x = Tensor::<2, Int>::from_data(data, (device, integer_type(device)));
        let score = |members: &MemberChunk| {
            let hidden = self.hidden.forward(members.repeat(x.clone())).clamp_min(0);
            let targets = members.repeat(targets.clone());
            log_likelihood(self.output.forward(hidden), targets, members.count(), Rounding::Floor)
        };
        population.evaluate(score)
    }
}
