//! The perturbed drop-in replacement of [`burn::nn::attention::MultiHeadAttention`].

use crate::Linear;
use crate::cache::TensorCache;
use crate::check::check;
use crate::drop_in::drop_in;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::attention::{self as plain, MhaOutput};
use burn::nn::{Dropout, Gelu, Initializer};
use burn::tensor::activation::{quiet_softmax, softmax};
use burn::tensor::{Bool, Device, Tensor};
use eggroll_core::scope;

/// Configuration of a [`MultiHeadAttention`]: the same as [`burn::nn::attention::MultiHeadAttentionConfig`].
#[derive(Config, Debug)]
pub struct MultiHeadAttentionConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The number of heads.
    pub n_heads: usize,
    /// The dropout rate of the weights, on autodiff devices only.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// The score of masked positions.
    #[config(default = -1.0e4)]
    pub min_float: f64,
    /// Whether weights may add up to less than 1: `exp(s)/(1 + Σ exp(s))`.
    #[config(default = false)]
    pub quiet_softmax: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
    /// If the layer of keys should have a bias.
    #[config(default = true)]
    pub key_bias: bool,
    /// If the layer of values should have a bias.
    #[config(default = true)]
    pub value_bias: bool,
    /// If the layer of queries should have a bias.
    #[config(default = true)]
    pub query_bias: bool,
    /// If the output layer should have a bias.
    #[config(default = true)]
    pub output_bias: bool,
}

impl MultiHeadAttentionConfig {
    /// Initializes a new [`MultiHeadAttention`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> MultiHeadAttention {
        check("MultiHeadAttentionConfig", self, &[&[("d_model", self.d_model), ("d_model", self.d_model)]]);
        plain::MultiHeadAttentionConfig {
            d_model: self.d_model,
            n_heads: self.n_heads,
            dropout: self.dropout,
            min_float: self.min_float,
            quiet_softmax: self.quiet_softmax,
            initializer: self.initializer.clone(),
            key_bias: self.key_bias,
            value_bias: self.value_bias,
            query_bias: self.query_bias,
            output_bias: self.output_bias,
        }
        .init(device)
        .into()
    }
}

/// Multi-head attention, the same as [`burn::nn::attention::MultiHeadAttention`]: `softmax(Q·Kᵀ/√d_k)·V` for each head, with
/// `Q`, `K`, `V` and the output from linear layers. Inside `evaluate` these are perturbed for every member. Attention itself
/// is between rows of one sequence and uses Burn's operations.
///
/// Created by [`MultiHeadAttentionConfig`] or from Burn's; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::attention::{MhaInput, MultiHeadAttention};
///
/// let device = Device::flex();
/// let burn_module = burn::nn::attention::MultiHeadAttentionConfig::new(8, 2).init(&device);
/// let module = MultiHeadAttention::from(burn_module.clone());
/// let x = Tensor::<3>::ones([2, 5, 8], &device);
/// let expected = burn_module.forward(burn::nn::attention::MhaInput::self_attn(x.clone()));
/// assert_eq!(module.forward(MhaInput::self_attn(x)).context.into_data(), expected.context.into_data());
/// ```
///
/// # References
///
/// Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, section 3.2.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MultiHeadAttention {
    /// The layer of queries: `[d_model, d_model]`
    pub query: Linear,
    /// The layer of keys: `[d_model, d_model]`
    pub key: Linear,
    /// The layer of values: `[d_model, d_model]`
    pub value: Linear,
    /// The output layer: `[d_model, d_model]`
    pub output: Linear,
    /// Dropout of the weights.
    pub dropout: Dropout,
    /// Not used; kept because Burn's module has the field.
    pub activation: Gelu,
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The number of heads.
    pub n_heads: usize,
    /// The size of a head's keys, queries and values.
    pub d_k: usize,
    /// The score of masked positions.
    pub min_float: f64,
    /// Whether weights may add up to less than 1.
    pub quiet_softmax: bool,
}

/// The input of attention, as [`burn::nn::attention::MhaInput`], whose fields cannot be read.
#[derive(Clone, Debug)]
pub struct MhaInput {
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    mask_pad: Option<Tensor<2, Bool>>,
    mask_attn: Option<Tensor<3, Bool>>,
}

impl MhaInput {
    /// Queries, keys and values from the same rows: `[batch, positions, d_model]`.
    pub fn self_attn(tensor: Tensor<3>) -> Self {
        Self::new(tensor.clone(), tensor.clone(), tensor)
    }

    /// Queries `[batch, positions_1, d_model]`, keys and values `[batch, positions_2, d_model]`.
    pub fn new(query: Tensor<3>, key: Tensor<3>, value: Tensor<3>) -> Self {
        Self { query, key, value, mask_pad: None, mask_attn: None }
    }

    /// Keys that nothing attends to: `[batch, positions_2]`, or `[rows, positions_2]` that all members share.
    pub fn mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.mask_pad = Some(mask_pad);
        self
    }

    /// Keys that a query does not attend to: `[batch, positions_1, positions_2]`, or `[rows, positions_1, positions_2]` that
    /// all members share.
    pub fn mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.mask_attn = Some(mask_attn);
        self
    }
}

impl MultiHeadAttention {
    /// Applies the module.
    ///
    /// # Shapes
    ///
    /// - query: `[batch, positions_1, d_model]`; key, value: `[batch, positions_2, d_model]`; inside `evaluate` the batch is
    ///   `members · rows`, member-major
    /// - masks: a row for each of the batch; inside `evaluate` also one member's rows, which all members share
    /// - output: context `[batch, positions_1, d_model]`, weights `[batch, n_heads, positions_1, positions_2]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit; inside `evaluate` also if the batch is not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, input: MhaInput) -> MhaOutput {
        self.check(&input);
        let query = self.heads(input.query, &self.query);
        let key = scope::acts_later(|| self.heads(input.key, &self.key));
        let value = scope::acts_later(|| self.heads(input.value, &self.value));
        let (weights, context) = self.attend(query, key, value, (input.mask_pad, input.mask_attn));
        MhaOutput { weights, context: self.output.forward(context) }
    }

    /// Applies the module to a sequence that has grown by its last position since the call before.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward), with all positions so far; of the output too.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_cache(&self, input: MhaInput, cache: &mut MhaCache) -> MhaOutput {
        self.check(&input);
        let query = cache.query.append(input.query, 2, |x| self.heads(x, &self.query));
        let fixed = cache.fixed_keys;
        let heads = |kept: &mut TensorCache<4>, input: Tensor<3>, layer: &Linear| match fixed {
            true => kept.keep(input, |x| self.heads(x, layer)),
            false => kept.append(input, 2, |x| self.heads(x, layer)),
        };
        let key = scope::acts_later(|| heads(&mut cache.key, input.key, &self.key));
        let value = scope::acts_later(|| heads(&mut cache.value, input.value, &self.value));
        let (weights, context) = self.attend(query, key, value, (input.mask_pad, input.mask_attn));
        let context = cache.output.append(context, 1, |x| self.output.forward(x));
        MhaOutput { weights, context }
    }

    #[track_caller]
    fn check(&self, MhaInput { query, key, value, .. }: &MhaInput) {
        let ([batch, _, d_query], [rows, positions, d_key]) = (query.dims(), key.dims());
        assert!(
            d_query == self.d_model && d_key == d_query && rows == batch && value.dims() == [batch, positions, d_key],
            "multi-head attention: queries {:?}, keys {:?} and values {:?} do not fit each other and a size of {}",
            query.dims(),
            key.dims(),
            value.dims(),
            self.d_model
        );
    }

    /// A linear layer, cut into heads: `[batch, positions, d_model]` to `[batch, n_heads, positions, d_k]`.
    #[track_caller]
    fn heads(&self, x: Tensor<3>, layer: &Linear) -> Tensor<4> {
        let [batch, positions, _] = x.dims();
        layer.forward(x).reshape([batch, positions, self.n_heads, self.d_k]).swap_dims(1, 2)
    }

    /// Weights `[batch, n_heads, positions_1, positions_2]` and their sums of the values: `[batch, positions_1, d_model]`.
    #[track_caller]
    fn attend(
        &self,
        query: Tensor<4>,
        key: Tensor<4>,
        value: Tensor<4>,
        (mask_pad, mask_attn): (Option<Tensor<2, Bool>>, Option<Tensor<3, Bool>>),
    ) -> (Tensor<4>, Tensor<3>) {
        let [batch, _, positions, _] = query.dims();
        let mut scores = query.matmul(key.transpose()).div_scalar((self.d_k as f32).sqrt());
        if let Some(mask) = mask_pad {
            let mask = self.mask_of_members(mask, batch);
            let [rows, keys] = mask.dims();
            scores = scores.mask_fill(mask.reshape([rows, 1, 1, keys]), self.min_float);
        }
        if let Some(mask) = mask_attn {
            let mask = self.mask_of_members(mask, batch).unsqueeze_dim::<4>(1);
            scores = scores.mask_fill(mask, self.min_float);
        }
        let weights = if self.quiet_softmax { quiet_softmax(scores, 3) } else { softmax(scores, 3) };
        let weights = self.dropout.forward(weights);
        let context = weights.clone().matmul(value).swap_dims(1, 2).reshape([batch, positions, self.d_model]);
        (weights, context)
    }

    /// Repeats a mask that all members share for every member; a mask with a row for each of the batch is returned as
    /// it is.
    fn mask_of_members<const D: usize>(&self, mask: Tensor<D, Bool>, batch: usize) -> Tensor<D, Bool> {
        match scope::active(&self.query.weight).map(|query| query.pairs().members()) {
            Some(members) if mask.dims()[0] * members == batch => mask.repeat_dim(0, members),
            _ => mask,
        }
    }
}

/// The cache of attention between calls, as [`burn::nn::attention::MhaCache`].
#[derive(Clone, Debug)]
pub struct MhaCache {
    query: TensorCache<4>,
    key: TensorCache<4>,
    value: TensorCache<4>,
    output: TensorCache<3>,
    /// Whether keys and values of the first call are kept.
    fixed_keys: bool,
}

impl MhaCache {
    /// For a sequence that attends to itself while it grows.
    pub fn autoregressive() -> Self {
        Self {
            query: TensorCache::empty(),
            key: TensorCache::empty(),
            value: TensorCache::empty(),
            output: TensorCache::empty(),
            fixed_keys: false,
        }
    }

    /// For a sequence that grows and attends to another, which does not.
    pub fn autoregressive_cross_attention() -> Self {
        Self { fixed_keys: true, ..Self::autoregressive() }
    }
}

drop_in!(
    MultiHeadAttention,
    plain::MultiHeadAttention {
        query,
        key,
        value,
        output,
        dropout,
        activation,
        d_model,
        n_heads,
        d_k,
        min_float,
        quiet_softmax,
    }
);

impl ModuleDisplay for MultiHeadAttention {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_model", &self.d_model)
            .add("n_heads", &self.n_heads)
            .add("d_k", &self.d_k)
            .add("dropout", &self.dropout.prob)
            .add("min_float", &self.min_float)
            .add("quiet_softmax", &self.quiet_softmax)
            .optional()
    }
}
