//! The perturbed drop-in replacement of [`burn::nn::transformer::TransformerEncoder`].

use super::config::TransformerEncoderConfig;
use super::{TransformerEncoderLayer, TransformerEncoderLayerAutoregressiveCache};
use crate::drop_in::drop_in;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::transformer as plain;
use burn::tensor::{Bool, Device, Tensor};

impl TransformerEncoderConfig {
    /// Initializes a new [`TransformerEncoder`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> TransformerEncoder {
        self.plain().init(device).into()
    }
}

/// Transformer encoder, the same as [`burn::nn::transformer::TransformerEncoder`]; inside `evaluate` under the parameters of
/// every member.
///
/// Created by [`TransformerEncoderConfig`] or from Burn's; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::attention::generate_autoregressive_mask;
/// use eggroll_nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
///
/// let device = Device::flex();
/// let model = TransformerEncoderConfig::new(8, 16, 2, 3).with_norm_first(true).init(&device);
/// let x = Tensor::<3>::ones([2, 5, 8], &device);
/// // No position sees those after it.
/// let causal = generate_autoregressive_mask(1, 5, &device);
/// let y = model.forward(TransformerEncoderInput::new(x).mask_attn(causal));
/// assert_eq!(y.dims(), [2, 5, 8]);
/// ```
///
/// # References
///
/// Vaswani et al., "Attention Is All You Need", arXiv 1706.03762.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The size inside the feed-forward parts.
    pub d_ff: usize,
    /// The number of attention heads.
    pub n_heads: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// The dropout rate.
    pub dropout: f64,
    /// Whether the inputs of a layer's parts are normalized, or the sums with their outputs.
    pub norm_first: bool,
    /// Whether attention weights may add up to less than 1.
    pub quiet_softmax: bool,
}

/// The input of a transformer encoder, as [`burn::nn::transformer::TransformerEncoderInput`], whose fields cannot be
/// read.
#[derive(Clone, Debug)]
pub struct TransformerEncoderInput {
    tensor: Tensor<3>,
    mask_pad: Option<Tensor<2, Bool>>,
    mask_attn: Option<Tensor<3, Bool>>,
}

impl TransformerEncoderInput {
    /// Sequences: `[batch, positions, d_model]`.
    pub fn new(tensor: Tensor<3>) -> Self {
        Self { tensor, mask_pad: None, mask_attn: None }
    }

    /// Positions that nothing attends to; see [`MhaInput::mask_pad`](crate::attention::MhaInput::mask_pad).
    pub fn mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.mask_pad = Some(mask_pad);
        self
    }

    /// Positions that a position does not attend to; see [`MhaInput::mask_attn`](crate::attention::MhaInput::mask_attn).
    pub fn mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.mask_attn = Some(mask_attn);
        self
    }
}

impl TransformerEncoder {
    /// Applies all layers.
    ///
    /// # Shapes
    ///
    /// - tensor: `[batch, positions, d_model]`; inside `evaluate` the batch is `members · rows`, member-major
    /// - masks: a row for each of the batch; inside `evaluate` also one member's rows, which all members share
    /// - output: `[batch, positions, d_model]`
    ///
    /// # Panics
    ///
    /// As [`MultiHeadAttention::forward`](crate::attention::MultiHeadAttention::forward).
    #[track_caller]
    pub fn forward(&self, input: TransformerEncoderInput) -> Tensor<3> {
        let TransformerEncoderInput { mut tensor, mask_pad, mask_attn } = input;
        for layer in &self.layers {
            tensor = layer.forward(tensor, mask_pad.clone(), mask_attn.clone());
        }
        tensor
    }

    /// Applies all layers to sequences that have grown by their last position since the call before.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward), with all positions so far; of the output too.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward), and if the cache has another number of layers.
    #[track_caller]
    pub fn forward_autoregressive_inference(
        &self,
        input: TransformerEncoderInput,
        cache: &mut TransformerEncoderAutoregressiveCache,
    ) -> Tensor<3> {
        let (layers, caches) = (self.layers.len(), cache.layers.len());
        assert!(layers == caches, "transformer encoder: a cache of {caches} layers for {layers} layers");
        let TransformerEncoderInput { mut tensor, mask_pad, mask_attn } = input;
        for (layer, cache) in self.layers.iter().zip(&mut cache.layers) {
            tensor = layer.forward_autoregressive_inference(tensor, mask_pad.clone(), mask_attn.clone(), cache);
        }
        tensor
    }

    /// An empty cache for [`forward_autoregressive_inference`](Self::forward_autoregressive_inference).
    pub fn new_autoregressive_cache(&self) -> TransformerEncoderAutoregressiveCache {
        let layers = self.layers.iter().map(|_| TransformerEncoderLayerAutoregressiveCache::empty());
        TransformerEncoderAutoregressiveCache { layers: layers.collect() }
    }
}

/// The cache of a transformer encoder between calls, as
/// [`burn::nn::transformer::TransformerEncoderAutoregressiveCache`].
#[derive(Clone, Debug)]
pub struct TransformerEncoderAutoregressiveCache {
    layers: Vec<TransformerEncoderLayerAutoregressiveCache>,
}

drop_in!(TransformerEncoder, plain::TransformerEncoder {
    layers => layers.into_iter().map(Into::into).collect(), d_model, d_ff, n_heads, n_layers, dropout, norm_first,
    quiet_softmax,
});

impl ModuleDisplay for TransformerEncoder {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_model", &self.d_model)
            .add("d_ff", &self.d_ff)
            .add("n_heads", &self.n_heads)
            .add("n_layers", &self.n_layers)
            .add("dropout", &self.dropout)
            .add("norm_first", &self.norm_first)
            .add("quiet_softmax", &self.quiet_softmax)
            .optional()
    }
}
