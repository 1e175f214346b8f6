//! The recurrent language model of the paper's integer experiments.

use super::{
    EggState, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, MinimalGru,
    MinimalGruConfig, Mlp, MlpConfig,
};
use crate::check::check;
use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{Rounding, add, integer_type};

/// Configuration of an [`EggModel`].
#[derive(Config, Debug)]
pub struct EggModelConfig {
    /// The number of tokens: bytes.
    #[config(default = 256)]
    pub vocab: usize,
    /// Blocks.
    #[config(default = 6)]
    pub layers: usize,
    /// The size of activations and states.
    #[config(default = 256)]
    pub width: usize,
    /// Whether the [layers](Mlp) between recurrences have a ReLU, which the paper's do not.
    #[config(default = false)]
    pub relu: bool,
}

impl EggModelConfig {
    /// A model with random weights.
    ///
    /// # Panics
    ///
    /// Panics if the vocabulary or the width is 0, or the vocabulary above 256.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> EggModel {
        check("EggModelConfig", self, &[&[("width", self.width), ("4 * width", self.width.saturating_mul(4))]]);
        assert!(self.vocab <= 256, "EggModel: a vocabulary of {} is above 256", self.vocab);
        let norm = || LayerNormConfig::new(self.width).init(device);
        let block = || EggBlock {
            gru_norm: norm(),
            gru: MinimalGruConfig::new(self.width).init(device),
            mlp_norm: norm(),
            mlp: MlpConfig::new(self.width).with_relu(self.relu).init(device),
        };
        EggModel {
            embedding: EmbeddingConfig::new(self.vocab, self.width).init(device),
            blocks: (0..self.layers).map(|_| block()).collect(),
            norm: norm(),
            head: LinearConfig::new(self.width, self.vocab).init(device),
        }
    }
}

/// `x = clip(GRU(norm(x)) + x)`, `x = clip(MLP(norm(x)) + x)`
#[derive(Module, Debug)]
pub struct EggBlock {
    /// Before the GRU.
    pub gru_norm: LayerNorm,
    /// The recurrent part.
    pub gru: MinimalGru,
    /// Before the MLP.
    pub mlp_norm: LayerNorm,
    /// The feed-forward part.
    pub mlp: Mlp,
}

impl EggBlock {
    #[track_caller]
    fn forward(
        &self,
        x: Tensor<3, Int>,
        state: Tensor<2, Int>,
        starts: Tensor<2, Int>,
    ) -> (Tensor<3, Int>, Tensor<2, Int>) {
        let (y, state) = self.gru.forward(self.gru_norm.forward(x.clone()), state, starts);
        let x = add(y, x, Rounding::Floor);
        (add(self.mlp.forward(self.mlp_norm.forward(x.clone())), x, Rounding::Floor), state)
    }
}

/// Embedding, recurrent blocks, layer norm and head, all int8: a byte-level language model. Token 0 starts a document.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_nn::integer::EggModelConfig;
///
/// let device = Device::flex();
/// let model = EggModelConfig::new().with_layers(2).with_width(32).init(&device);
/// let tokens = Tensor::<2, Int>::from_ints([[0, 104, 105]], &device);
/// let (logits, state) = model.forward(tokens, model.initial_state(1));
/// assert_eq!(logits.dims(), [1, 3, 256]);
/// assert_eq!(state.layers.len(), 2);
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.
#[derive(Module, Debug)]
pub struct EggModel {
    /// `[vocab, width]`
    pub embedding: Embedding,
    /// The recurrent blocks.
    pub blocks: Vec<EggBlock>,
    /// Before the head.
    pub norm: LayerNorm,
    /// `[width, vocab]`
    pub head: Linear,
}

impl EggModel {
    /// The logits of the next token after every token, in sixteenths of a bit, and the state to continue from.
    ///
    /// # Shapes
    ///
    /// - tokens: `[batch, steps]`; inside `evaluate` the first axis is `members · sequences`, member-major
    /// - output: `[batch, steps, vocab]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with the shapes.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>, state: EggState) -> (Tensor<3, Int>, EggState) {
        assert!(
            state.layers.len() == self.blocks.len(),
            "EggModel: a state of {} layers for {} blocks",
            state.layers.len(),
            self.blocks.len()
        );
        let starts = tokens.clone().equal_elem(0).int();
        let mut x = self.embedding.forward(tokens); // [batch, steps, width]
        let mut layers = Vec::with_capacity(self.blocks.len());
        for (block, state) in self.blocks.iter().zip(state.layers) {
            let last;
            (x, last) = block.forward(x, state, starts.clone());
            layers.push(last);
        }
        (self.head.forward(self.norm.forward(x)), EggState { layers })
    }

    /// The state before any token: zeros.
    pub fn initial_state(&self, batch: usize) -> EggState {
        let ([width, _], device) = (self.head.weight.dims(), self.head.weight.device());
        let zeros = || Tensor::zeros([batch, width], (&device, integer_type(&device)));
        EggState { layers: self.blocks.iter().map(|_| zeros()).collect() }
    }
}
