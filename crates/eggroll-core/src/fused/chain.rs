//! Perturbed linear layers one after the other, on the host, for rows of any members: the network of a rollout.
//!
//! An episode runs a small network thousands of times, and members come and go as their episodes end. A [`Chain`] uses no tensor
//! and no allocation in a step. The noise of a pair is drawn once for its episodes, and rows name the slot that holds it. Values
//! equal the perturbed operations on a CPU backend, bit for bit.

pub use crate::backend::cpu::ChainRow;
pub use crate::rollout::layer::{ChainActivation, ChainLayer};

use crate::backend::cpu::{
    BiasSlice, ChainForward, ChainNoise, ChainSlices, MAX_COLUMNS, SourceSlice, chain_forward, packed,
};
use crate::noise::role::{ParameterNoise, Role};
use crate::ops::{DenseNoise, LowRankNoise};
use crate::rng::fill_noise;
use crate::rng::key::NoiseKey;
use crate::rollout::layer::floats;
use crate::scope::Perturbation;
use crate::work::profile::{self, Component};
use burn::module::ParamId;

/// The layers of a model under one generation's noise.
pub struct Chain {
    layers: Vec<ChainSlices>,
    draws: Vec<LayerDraw>,
    noise_len: usize,
    parameters: Vec<ParamId>,
    traced: bool,
}

/// How a layer's noise is drawn.
struct LayerDraw {
    /// `None` without noise.
    key: Option<NoiseKey>,
    elements: usize,
    bias: Option<LayerBias>,
}

struct LayerBias {
    values: Vec<f32>,
    noise: Option<DenseNoise>,
}

/// Buffers of a chain, for a number of rows and slots.
pub struct ChainBuffers {
    slots: usize,
    /// `[slots, noise_len]`, with slack behind.
    noise: Vec<f32>,
    t: Vec<f32>,
    hidden: [Vec<f32>; 2],
}

impl Chain {
    /// The chain of `layers` under `perturbation`, if it can run on the host: float32 weights with drawn low-rank or dense noise. Reads the parameters to the
    /// host.
    pub fn new(perturbation: &Perturbation, layers: &[ChainLayer]) -> Option<Self> {
        let mut chain = Self::empty();
        layers.iter().try_for_each(|layer| chain.push_perturbed(perturbation, layer))?;
        (!layers.is_empty()).then_some(chain)
    }

    /// The chain of `layers` as they are, if it can run on the host: float32 weights. Its slots hold the biases: any pair can be drawn into them.
    pub fn of_model(layers: &[ChainLayer]) -> Option<Self> {
        let mut chain = Self::empty();
        for layer in layers {
            let bias = match layer.bias {
                None => None,
                Some(bias) => Some(LayerBias { values: floats(bias.val())?, noise: None }),
            };
            let none = ChainNoise::LowRank { rank: 0, b: chain.noise_len, a: chain.noise_len };
            chain.push(layer, LayerDraw { key: None, elements: 0, bias }, (none, 0.0))?;
        }
        (!layers.is_empty()).then_some(chain)
    }

    fn empty() -> Self {
        let (layers, draws, parameters) = (Vec::new(), Vec::new(), Vec::new());
        Self { layers, draws, noise_len: 0, parameters, traced: profile::enabled() }
    }

    fn push_perturbed(&mut self, perturbation: &Perturbation, layer: &ChainLayer) -> Option<()> {
        let drawn = |noise: &ParameterNoise| noise.source.is_stream();
        let noise = perturbation.noise_of(layer.weight).filter(drawn)?;
        let [d_input, d_output] = layer.weight.val().dims();
        let at = self.noise_len;
        let (elements, scale, of_weight) = match noise.role {
            Role::LowRank { rank } => {
                let low_rank = LowRankNoise::new(noise.key, rank, noise.sigma);
                let [b, a] = low_rank.starts([d_input, d_output]).map(|start| at + start);
                (rank * (d_input + d_output), low_rank.scale, ChainNoise::LowRank { rank, b, a })
            }
            Role::Dense => {
                let dense = DenseNoise::new(noise.key, noise.sigma);
                (d_input * d_output, dense.scale, ChainNoise::Dense { epsilon: at })
            }
            Role::Sparse | Role::Frozen => return None,
        };
        self.parameters.push(layer.weight.id);
        let bias = match layer.bias {
            None => None,
            Some(bias) => {
                let noise = perturbation.noise_of(bias).filter(drawn)?;
                let dense = (noise.role != Role::Frozen).then(|| DenseNoise::new(noise.key, noise.sigma));
                self.parameters.push(bias.id);
                Some(LayerBias { values: floats(bias.val())?, noise: dense })
            }
        };
        self.push(layer, LayerDraw { key: Some(noise.key), elements, bias }, (of_weight, scale))
    }

    /// Appends a layer whose noise begins at the end of the slots' noise.
    fn push(&mut self, layer: &ChainLayer, draw: LayerDraw, (noise, scale): (ChainNoise, f32)) -> Option<()> {
        let weight = layer.weight.val();
        let [d_input, d_output] = weight.dims();
        if self.layers.last().is_some_and(|before| before.d_output != d_input) {
            return None;
        }
        self.noise_len += draw.elements;
        let biases = draw.bias.is_some().then_some(self.noise_len);
        self.noise_len += if draw.bias.is_some() { 2 * d_output } else { 0 };
        self.layers.push(ChainSlices {
            d_input,
            d_output,
            packed: packed(&floats(weight)?, d_input, d_output),
            noise,
            scale,
            biases,
            activation: layer.activation,
        });
        self.draws.push(draw);
        Some(())
    }

    /// The parameters that it perturbs.
    pub fn parameters(&self) -> &[ParamId] {
        &self.parameters
    }

    /// Inputs of the first layer and outputs of the last.
    pub fn shape(&self) -> [usize; 2] {
        [self.layers[0].d_input, self.layers[self.layers.len() - 1].d_output]
    }

    /// Buffers for at most `rows` rows of at most `slots` pairs.
    pub fn buffers(&self, slots: usize, rows: usize) -> ChainBuffers {
        let widest = self.layers.iter().map(|layer| layer.d_output).max().unwrap_or(0);
        let projected = self.layers.iter().map(ChainSlices::t_width).max().unwrap_or(0);
        ChainBuffers {
            slots,
            noise: vec![0.0; slots * self.noise_len + MAX_COLUMNS],
            t: vec![0.0; rows * projected],
            hidden: [(); 2].map(|()| vec![0.0; rows * widest]),
        }
    }

    /// Draws the noise of `pair` into a slot.
    ///
    /// # Panics
    ///
    /// Panics if the buffers were made for another chain, or have no such slot.
    #[track_caller]
    pub fn draw(&self, pair: u32, slot: u32, buffers: &mut ChainBuffers) {
        buffers.check(self.noise_len, slot);
        let _span = profile::fine(self.traced, Component::Noise, 4 * self.noise_len);
        let mut rest = &mut buffers.noise[slot as usize * self.noise_len..][..self.noise_len];
        for (draw, layer) in self.draws.iter().zip(&self.layers) {
            let (weight, after) = rest.split_at_mut(draw.elements);
            if let Some(key) = draw.key {
                fill_noise(key, pair, 0, weight);
            }
            let (biases, after) = after.split_at_mut(if draw.bias.is_some() { 2 * layer.d_output } else { 0 });
            if let Some(bias) = &draw.bias {
                let slice = match bias.noise {
                    None => BiasSlice::Plain(&bias.values),
                    Some(noise) => BiasSlice::Perturbed(&bias.values, noise, SourceSlice::Drawn),
                };
                slice.fill_pair(pair, biases);
            }
            rest = after;
        }
    }

    /// Runs the layers on rows of members whose noise has been drawn.
    ///
    /// # Shapes
    ///
    /// - x: `[rows, d_input]`, y: `[rows, d_output]`; longer slices are used in part
    ///
    /// # Panics
    ///
    /// Panics if the buffers were made for another chain, for more rows than buffers or slices hold, or for a slot outside
    /// the buffers.
    #[track_caller]
    pub fn forward(&self, rows: &[ChainRow], x: &[f32], buffers: &mut ChainBuffers, y: &mut [f32]) {
        if let Some(slot) = rows.iter().map(|row| row.slot).max() {
            buffers.check(self.noise_len, slot);
        }
        let ChainBuffers { noise, t, hidden: [a, b], .. } = buffers;
        let Self { layers, noise_len, traced, .. } = self;
        let (noise_len, traced) = (*noise_len, *traced);
        chain_forward(ChainForward { layers, noise, noise_len, rows, x, t, hidden: [a, b], y, traced });
    }
}

impl ChainBuffers {
    /// Panics unless these are buffers for noise of this length and have the slot.
    #[track_caller]
    fn check(&self, noise_len: usize, slot: u32) {
        let slots = self.slots;
        assert!(
            self.noise.len() == slots * noise_len + MAX_COLUMNS,
            "chain: buffers of {slots} slots that were made for another chain: {} floats of noise, not {slots} times {noise_len}",
            self.noise.len() - MAX_COLUMNS
        );
        assert!((slot as usize) < slots, "chain: slot {slot} of buffers that have {slots} slots");
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
