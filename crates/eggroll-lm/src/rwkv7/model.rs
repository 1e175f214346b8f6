//! A model of the RWKV-7 architecture.

use super::block::Rwkv7Block;
use super::state::LayerState;
use crate::load::Rwkv7Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::tensor::{Device, Int, Tensor};
use eggroll_nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};

/// A recurrent language model of the RWKV-7 architecture (Peng et al., "RWKV-7 'Goose' with Expressive Dynamic State Evolution", arXiv
/// 2503.14456). It is made of perturbed modules: inside `evaluate` it takes rows of all members. Parameters have the names of the
/// reference code; [`files`](Self::files) has their names in files.
///
/// [`forward`](Self::forward) runs on every backend, one position after the other. On CPUs [`HostRwkv7`](crate::HostRwkv7) is many times
/// faster: it scores and generates for a population without tensors.
///
/// The EGGROLL paper (arXiv 2511.16652) trains only the matrices of the blocks, with low-rank noise:
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_core::{EggrollConfig, ParameterTable, Role};
/// use eggroll_lm::{load::Rwkv7Config, rwkv7::Rwkv7};
///
/// let config = Rwkv7Config {
///     vocab_size: 32,
///     hidden_size: 16,
///     intermediate_size: 64,
///     layers: 2,
///     head_dim: 8,
///     decay_rank: 4,
///     a_rank: 4,
///     v_rank: 4,
///     gate_rank: 4,
///     norm_eps: 1e-5,
///     tied_head: false,
/// };
/// let model = Rwkv7::new(&config, &Device::flex());
/// let noiser = EggrollConfig::new().with_freeze_non_matrix(true).init()?;
/// let table = ParameterTable::new(&model, &noiser, &["emb".into(), "head".into()])?;
/// let trained = table.entries().iter().filter(|entry| entry.role != Role::Frozen).count();
/// assert_eq!(trained, 12 + 14, "r, k, v, o, two for the feed-forward part, and the low-rank pairs w, a, g, and v from the second layer on");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Rwkv7 {
    /// Embeddings of tokens, `[vocab_size, hidden_size]`.
    pub emb: Embedding,
    /// Normalization of embeddings.
    pub ln0: LayerNorm,
    /// The blocks.
    pub blocks: Vec<Rwkv7Block>,
    /// Normalization before the output layer.
    pub ln_out: LayerNorm,
    /// The output layer, `[hidden_size, vocab_size]`; `None` if it is tied to the embeddings.
    pub head: Option<Linear>,
    #[module(skip)]
    config: Rwkv7Config,
}

impl Rwkv7 {
    /// A model with random weights.
    ///
    /// # Panics
    ///
    /// Panics if the configuration is not [valid](crate::load::ModelConfig::validate).
    #[track_caller]
    pub fn new(config: &Rwkv7Config, device: &Device) -> Self {
        if let Err(error) = config.validate() {
            panic!("Rwkv7: {error}");
        }
        let norm = || LayerNormConfig::new(config.hidden_size).with_epsilon(config.norm_eps).init(device);
        let head = LinearConfig::new(config.hidden_size, config.vocab_size).with_bias(false);
        Self {
            emb: EmbeddingConfig::new(config.vocab_size, config.hidden_size).init(device),
            ln0: norm(),
            blocks: (0..config.layers).map(|layer| Rwkv7Block::new(config, layer, device)).collect(),
            ln_out: norm(),
            head: (!config.tied_head).then(|| head.init(device)),
            config: config.clone(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Rwkv7Config {
        &self.config
    }

    /// The states of empty sequences, one for each block; inside `evaluate` of the rows of all members.
    pub fn empty_state(&self, rows: usize) -> Vec<LayerState> {
        let Rwkv7Config { hidden_size, head_dim, layers, .. } = self.config;
        let weight = self.emb.weight.val();
        let (device, dtype) = (weight.device(), weight.dtype());
        let layer = LayerState {
            attention: Tensor::zeros([rows, hidden_size], (&device, dtype)),
            feed_forward: Tensor::zeros([rows, hidden_size], (&device, dtype)),
            wkv: Tensor::zeros([rows, hidden_size / head_dim, head_dim, head_dim], (&device, dtype)),
        };
        vec![layer; layers]
    }

    /// Logits of the next token at every position of sequences of one length, from their beginning.
    ///
    /// # Shapes
    ///
    /// - tokens: `[rows, length]`; inside `evaluate` `[members · rows, length]`
    /// - output: `[rows, length, vocab_size]`
    ///
    /// # Panics
    ///
    /// Panics if the sequences have no tokens.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let mut state = self.empty_state(tokens.dims()[0]);
        self.forward_from(tokens, &mut state)
    }

    /// [`forward`](Self::forward) of the next tokens of sequences, whose states it changes.
    ///
    /// # Panics
    ///
    /// Panics if the sequences have no new tokens, or if there is not a state for each block.
    #[track_caller]
    pub fn forward_from(&self, tokens: Tensor<2, Int>, state: &mut [LayerState]) -> Tensor<3> {
        let [rows, length] = tokens.dims();
        assert!(length > 0, "Rwkv7: {rows} sequences without tokens");
        assert!(state.len() == self.blocks.len(), "Rwkv7: {} states for {} blocks", state.len(), self.blocks.len());
        let mut x = self.ln0.forward(self.emb.forward(tokens)); // [rows, length, hidden_size]
        let mut first = None;
        for (block, state) in self.blocks.iter().zip(state) {
            x = block.forward(x, state, &mut first);
        }
        let x = self.ln_out.forward(x);
        match &self.head {
            Some(head) => head.forward(x),
            None => self.emb.forward_transposed(x),
        }
    }
}

impl ModuleDisplay for Rwkv7 {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("layers", &self.blocks.len())
            .add("hidden_size", &self.config.hidden_size)
            .add("vocab_size", &self.config.vocab_size)
            .optional()
    }
}
