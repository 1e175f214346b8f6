//! The network that is timed, plain and as a population.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Distribution, Tensor};
use clap::ValueEnum;
use eggroll::core::scope::Perturbation;
use eggroll::core::{NoiseSourceConfig, NoiserConfig, NoiserError, PairRange, ParameterTable};
use eggroll::nn::{Linear, LinearConfig};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A network by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "help would list the sizes a second time: `widths` says what they are")]
pub enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    /// Inputs, hidden units, outputs.
    pub fn widths(self) -> [usize; 3] {
        match self {
            Self::Small => [4, 256, 2],
            Self::Medium => [64, 512, 64],
            Self::Large => [256, 2048, 256],
        }
    }
}

/// Two layers without bias, and a rectifier between them.
#[derive(Module, Debug)]
pub struct Network {
    first: Linear,
    second: Linear,
}

impl Network {
    /// A network with random weights.
    pub fn new(size: Size, device: &Device) -> Self {
        let [inputs, hidden, outputs] = size.widths();
        let layer = |i, o| LinearConfig::new(i, o).with_bias(false).init(device);
        Self { first: layer(inputs, hidden), second: layer(hidden, outputs) }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(relu(self.first.forward(x)))
    }
}

/// A network, its input, and one way to perturb it.
pub struct Population {
    network: Network,
    x: Tensor<2>,
    perturbation: Perturbation,
    source: NoiseSourceConfig,
}

impl Population {
    /// One row of input for each of `members`.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] for settings that no noiser can be built from.
    pub fn new(
        network: &Network,
        members: usize,
        noiser: &NoiserConfig,
        source: NoiseSourceConfig,
        device: &Device,
    ) -> Result<Self, NoiserError> {
        let noiser = noiser.init()?;
        let table = ParameterTable::new(network, noiser.as_ref(), &[]).expect("two matrices to train");
        let held = source.hold(&table, 0, 0, PairRange::new(0, (members / 2) as u32), None);
        let inputs = network.first.weight.val().dims()[0];
        Ok(Self {
            x: Tensor::random([members, inputs], Distribution::Default, device),
            perturbation: Perturbation {
                noiser,
                table: Arc::new(table),
                seed: 0,
                generation: 0,
                sigma: 0.1,
                held: Arc::new(held),
            },
            network: network.clone(),
            source,
        })
    }

    fn pairs(&self) -> PairRange {
        PairRange::new(0, (self.x.dims()[0] / 2) as u32)
    }

    /// Bytes of noise that are kept between passes.
    pub fn materialized_bytes(&self) -> u64 {
        self.perturbation.held.bytes()
    }

    /// Plain inference of as many rows.
    pub fn inference(&self) -> Tensor<2> {
        self.network.forward(self.x.clone())
    }

    /// Every member on its own row. Noise that is drawn on the fly is new in every pass.
    pub fn forward(&mut self) -> Tensor<2> {
        if self.source == NoiseSourceConfig::OnTheFly {
            self.perturbation.generation = self.perturbation.generation.wrapping_add(1);
        }
        self.perturbation.run(self.pairs(), || self.network.forward(self.x.clone())).0
    }

    /// The gradient estimate of both layers.
    pub fn estimate(&mut self, weights: &Tensor<1>) -> Vec<Tensor<1>> {
        self.perturbation.generation = self.perturbation.generation.wrapping_add(1);
        let entries = self.perturbation.table.entries().iter().enumerate();
        let estimate = |position: usize, shape: &[usize]| {
            self.perturbation.parameter(position).estimate(weights.clone(), shape, weights.dtype())
        };
        entries.map(|(position, entry)| estimate(position, &entry.shape)).collect()
    }
}
