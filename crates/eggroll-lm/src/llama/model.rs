//! A model of the Llama architecture.

use super::cache::KvCache;
use super::layer::LlamaLayer;
use super::positions::{LayerPositions, Positions};
use super::rotary::Frequencies;
use crate::load::{LlamaConfig, ModelConfig};
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::tensor::{Bool, DType, Device, Int, Tensor};
use eggroll_nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, RmsNorm, RmsNormConfig};

/// A decoder of the Llama architecture (Touvron et al., arXiv 2302.13971) or of a relative that [`LlamaConfig`] describes, made of perturbed
/// modules. Inside `evaluate` it takes rows of all members. Parameters have the names in files of weights, without the leading `model.`.
///
/// It runs on every backend, and scores and continues texts for all members of a population there
/// ([`LanguageModel`](crate::LanguageModel)). On CPUs [`HostLlama`](crate::HostLlama) is many times faster, which needs no tensors.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Llama {
    /// Embeddings of tokens, `[vocab_size, hidden_size]`.
    pub embed_tokens: Embedding,
    /// The layers.
    pub layers: Vec<LlamaLayer>,
    /// Normalization before the output layer.
    pub norm: RmsNorm,
    /// The output layer, `[hidden_size, vocab_size]`; `None` if it is tied to the embeddings.
    pub lm_head: Option<Linear>,
    #[module(skip)]
    config: LlamaConfig,
}

impl Llama {
    /// A model with random weights.
    ///
    /// # Panics
    ///
    /// Panics if the configuration is not [valid](ModelConfig::validate).
    #[track_caller]
    pub fn new(config: &LlamaConfig, device: &Device) -> Self {
        if let Err(error) = ModelConfig::Llama(config.clone()).validate() {
            panic!("Llama: {error}");
        }
        let head = LinearConfig::new(config.hidden_size, config.vocab_size).with_bias(false);
        Self {
            embed_tokens: EmbeddingConfig::new(config.vocab_size, config.hidden_size).init(device),
            layers: (0..config.layers).map(|layer| LlamaLayer::new(config, layer, device)).collect(),
            norm: RmsNormConfig::new(config.hidden_size).with_epsilon(config.rms_norm_eps).init(device),
            lm_head: (!config.tied_head).then(|| head.init(device)),
            config: config.clone(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// Logits of the next token at every position of sequences of one length.
    ///
    /// # Shapes
    ///
    /// - tokens: `[rows, length]`; inside `evaluate` `[members · rows, length]`
    /// - output: `[rows, length, vocab_size]`
    ///
    /// # Panics
    ///
    /// Panics if the sequences are longer than the context.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [_, length] = tokens.dims();
        let context = self.config.context_length;
        assert!(length <= context, "Llama: {length} tokens, but the context is {context} tokens");
        self.head(self.hidden_rows(tokens))
    }

    /// Rows after the last layer, `[rows, length]` to `[rows, length, hidden_size]`.
    pub(crate) fn hidden_rows(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let ([_, length], device) = (tokens.dims(), tokens.device());
        let of = |frequencies: &Frequencies, hidden: Tensor<2, Bool>| {
            let [cosines, sines] = frequencies.tensors(length, (&device, self.dtype()));
            LayerPositions { cosines: cosines.unsqueeze(), sines: sines.unsqueeze(), hidden: hidden.unsqueeze() }
        };
        let (frequencies, own) = Frequencies::of(&self.config);
        let future = Tensor::<2, Bool>::tril_mask([length, length], 0, &device);
        let windowed = self.config.window.map(|window| {
            // Keys that are `positions` or more positions back.
            let past = Tensor::<2, Bool>::triu_mask([length, length], 1 - window.positions.min(length) as i64, &device);
            of(own.as_ref().unwrap_or(&frequencies), future.clone().bool_or(past))
        });
        self.through_layers(tokens, &Positions { full: of(&frequencies, future), windowed }, None)
    }

    /// [`hidden_rows`](Self::hidden_rows) of the tokens after the cached ones; adds them to the cache.
    pub(crate) fn next_hidden_rows(&self, tokens: Tensor<2, Int>, cache: &mut KvCache) -> Tensor<3> {
        let positions = cache.advance(tokens.dims()[1]);
        self.through_layers(tokens, &positions, Some(cache))
    }

    /// Logits of hidden rows.
    pub(crate) fn head<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let x = self.norm.forward(x);
        let logits = match &self.lm_head {
            Some(head) => head.forward(x),
            None => self.embed_tokens.forward_transposed(x),
        };
        match self.config.gemma.and_then(|gemma| gemma.logit_cap) {
            Some(cap) => (logits / cap).tanh() * cap,
            None => logits,
        }
    }

    fn through_layers(
        &self,
        tokens: Tensor<2, Int>,
        positions: &Positions,
        mut cache: Option<&mut KvCache>,
    ) -> Tensor<3> {
        let x = self.embed_tokens.forward(tokens); // [rows, length, hidden_size]
        let mut x = self.config.gemma.map_or(x.clone(), |_| x * (self.config.hidden_size as f64).sqrt());
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, positions, cache.as_deref_mut().map(|cache| cache.layer(index)));
        }
        x
    }

    /// Where the weights are.
    pub(crate) fn device(&self) -> Device {
        self.embed_tokens.weight.val().device()
    }

    /// The type of weights and activations.
    pub(crate) fn dtype(&self) -> DType {
        self.embed_tokens.weight.val().dtype()
    }
}

impl ModuleDisplay for Llama {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("layers", &self.layers.len())
            .add("hidden_size", &self.config.hidden_size)
            .add("vocab_size", &self.config.vocab_size)
            .optional()
    }
}
