//! The perturbed drop-in replacement of [`burn::nn::transformer::TransformerEncoderLayer`].

use super::{PositionWiseFeedForward, TransformerEncoderConfig};
use crate::LayerNorm;
use crate::attention::{MhaCache, MhaInput, MultiHeadAttention};
use crate::cache::TensorCache;
use crate::drop_in::drop_in;
use burn::module::Module;
use burn::nn::Dropout;
use burn::nn::transformer as plain;
use burn::tensor::{Bool, Device, Tensor};

/// A layer of a [`TransformerEncoder`](super::TransformerEncoder), the same as
/// [`burn::nn::transformer::TransformerEncoderLayer`]; inside `evaluate` under the parameters of every member.
///
/// - normalized after: `y = norm_1(x + attention(x))`, output `norm_2(y + feed_forward(y))`
/// - normalized first: `y = x + attention(norm_2(x))`, output `y + feed_forward(norm_1(y))`
#[derive(Module, Debug)]
pub struct TransformerEncoderLayer {
    /// Attention of the sequence to itself.
    pub mha: MultiHeadAttention,
    /// The feed-forward part.
    pub pwff: PositionWiseFeedForward,
    /// Before the feed-forward part.
    pub norm_1: LayerNorm,
    /// Before attention if normalized first, else at the end.
    pub norm_2: LayerNorm,
    /// Dropout of both parts' outputs.
    pub dropout: Dropout,
    /// Whether both parts' inputs are normalized, or sums with their outputs.
    pub norm_first: bool,
}

impl TransformerEncoderLayer {
    /// Initializes a new layer.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn new(config: &TransformerEncoderConfig, device: &Device) -> Self {
        plain::TransformerEncoderLayer::new(&config.plain(), device).into()
    }

    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, positions, d_model]`; inside `evaluate` the batch is `members · rows`, member-major
    /// - masks: as [`MhaInput::mask_pad`] and [`MhaInput::mask_attn`]
    /// - output: `[batch, positions, d_model]`
    ///
    /// # Panics
    ///
    /// As [`MultiHeadAttention::forward`].
    #[track_caller]
    pub fn forward(
        &self,
        input: Tensor<3>,
        mask_pad: Option<Tensor<2, Bool>>,
        mask_attn: Option<Tensor<3, Bool>>,
    ) -> Tensor<3> {
        let parts = LayerParts {
            attention: |input: MhaInput| self.mha.forward(input).context,
            feed_forward: |x: Tensor<3>| self.pwff.forward(x),
            norm_1: |x: Tensor<3>| self.norm_1.forward(x),
            norm_2: |x: Tensor<3>| self.norm_2.forward(x),
        };
        self.compose(parts, input, mask_pad, mask_attn)
    }

    /// Applies the layer to a sequence that has grown by its last position since the call before.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward), with all positions so far; of the output too.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_autoregressive_inference(
        &self,
        input: Tensor<3>,
        mask_pad: Option<Tensor<2, Bool>>,
        mask_attn: Option<Tensor<3, Bool>>,
        cache: &mut TransformerEncoderLayerAutoregressiveCache,
    ) -> Tensor<3> {
        let TransformerEncoderLayerAutoregressiveCache { mha, pwff, norm_1, norm_2 } = cache;
        let parts = LayerParts {
            attention: |input: MhaInput| self.mha.forward_cache(input, mha).context,
            feed_forward: |x: Tensor<3>| pwff.append(x, 1, |x| self.pwff.forward(x)),
            norm_1: |x: Tensor<3>| norm_1.append(x, 1, |x| self.norm_1.forward(x)),
            norm_2: |x: Tensor<3>| norm_2.append(x, 1, |x| self.norm_2.forward(x)),
        };
        self.compose(parts, input, mask_pad, mask_attn)
    }

    #[track_caller]
    fn compose<A, F, N1, N2>(
        &self,
        parts: LayerParts<A, F, N1, N2>,
        x: Tensor<3>,
        mask_pad: Option<Tensor<2, Bool>>,
        mask_attn: Option<Tensor<3, Bool>>,
    ) -> Tensor<3>
    where
        A: FnOnce(MhaInput) -> Tensor<3>,
        F: FnOnce(Tensor<3>) -> Tensor<3>,
        N1: FnOnce(Tensor<3>) -> Tensor<3>,
        N2: FnOnce(Tensor<3>) -> Tensor<3>,
    {
        let LayerParts { attention, feed_forward, norm_1, norm_2 } = parts;
        let attend = |x: Tensor<3>| {
            let input = MhaInput::self_attn(x);
            let input = mask_pad.into_iter().fold(input, MhaInput::mask_pad);
            self.dropout.forward(attention(mask_attn.into_iter().fold(input, MhaInput::mask_attn)))
        };
        let feed_forward = |x: Tensor<3>| self.dropout.forward(feed_forward(x));
        if self.norm_first {
            let x = x.clone() + attend(norm_2(x));
            x.clone() + feed_forward(norm_1(x))
        } else {
            let x = norm_1(x.clone() + attend(x));
            norm_2(x.clone() + feed_forward(x))
        }
    }
}

/// The parts of a layer, each used once: as they are, or through a cache.
struct LayerParts<A, F, N1, N2> {
    attention: A,
    feed_forward: F,
    norm_1: N1,
    norm_2: N2,
}

/// The cache of a layer between calls, as [`burn::nn::transformer::TransformerEncoderLayerAutoregressiveCache`].
#[derive(Clone, Debug)]
pub struct TransformerEncoderLayerAutoregressiveCache {
    /// Of attention.
    pub mha: MhaCache,
    /// Of the feed-forward part.
    pub pwff: TensorCache<3>,
    /// Of the first layer norm.
    pub norm_1: TensorCache<3>,
    /// Of the second layer norm.
    pub norm_2: TensorCache<3>,
}

impl TransformerEncoderLayerAutoregressiveCache {
    /// An empty cache.
    pub fn empty() -> Self {
        Self {
            mha: MhaCache::autoregressive(),
            pwff: TensorCache::empty(),
            norm_1: TensorCache::empty(),
            norm_2: TensorCache::empty(),
        }
    }
}

drop_in!(TransformerEncoderLayer, plain::TransformerEncoderLayer { mha, pwff, norm_1, norm_2, dropout, norm_first });
