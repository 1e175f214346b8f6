//! The network that is timed, plain and as a population.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Distribution, Tensor};
use eggroll::core::scope::Perturbation;
use eggroll::core::{NoiseSourceConfig, NoiserConfig, NoiserError, PairRange, ParameterTable};
use eggroll::nn::{Linear, LinearConfig};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

/// Most units of a layer.
const MOST_UNITS: usize = 1 << 16;

/// A network's inputs, hidden units and outputs, such as `64-512-64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size([usize; 3]);

impl Size {
    /// 4-256-2.
    pub const SMALL: Self = Self([4, 256, 2]);
    /// 64-512-64.
    pub const MEDIUM: Self = Self([64, 512, 64]);
    /// 256-2048-256.
    pub const LARGE: Self = Self([256, 2048, 256]);
    /// Sizes that have a name.
    pub const NAMED: [(&str, Self); 3] = [("small", Self::SMALL), ("medium", Self::MEDIUM), ("large", Self::LARGE)];

    /// Inputs, hidden units, outputs.
    pub fn widths(self) -> [usize; 3] {
        self.0
    }

    /// Multiplications of a member's forward pass on one row.
    pub fn products(self) -> u64 {
        let [inputs, hidden, outputs] = self.0.map(|width| width as u64);
        hidden * (inputs + outputs)
    }

    /// Values of a pair's noise of rank 1.
    pub fn factors(self) -> u64 {
        let [inputs, hidden, outputs] = self.0.map(|width| width as u64);
        inputs + 2 * hidden + outputs
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, size)) = Self::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*size);
        }
        let widths: Option<Vec<usize>> = text.split('-').map(|width| width.parse().ok()).collect();
        let widths = widths.and_then(|widths| <[usize; 3]>::try_from(widths).ok());
        let fits = |widths: &[usize; 3]| widths.iter().all(|width| (1..=MOST_UNITS).contains(width));
        widths.filter(fits).map(Self).ok_or_else(|| {
            format!("expected small, medium, large, or three widths from 1 to {MOST_UNITS} as 64-512-64, not {text}")
        })
    }
}

/// The name, or the widths.
impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, size)| size == self) {
            Some((name, _)) => f.pad(name),
            None => f.pad(&self.0.map(|width| width.to_string()).join("-")),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
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
