//! The attending part of a block.

use super::{MeanNorm, MeanNormConfig, Observe, RoundedLinear, RoundedLinearConfig, by_row, residual};
use crate::check::check;
use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer;
use eggroll_core::scope::acts_later;

/// Configuration of an [`Attention`] part.
#[derive(Config, Debug)]
pub struct AttentionConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// Heads, each of an even size.
    pub n_heads: usize,
}

impl AttentionConfig {
    /// Norm and four layers without biases.
    ///
    /// # Panics
    ///
    /// Panics with the field if a size is 0, a size is larger than memory, or f32 cannot hold a number. Also panics if `d_model` is not
    /// `n_heads` times an even number.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Attention {
        check("integer AttentionConfig", self, &[]);
        let Self { d_model, n_heads } = *self;
        assert!(
            d_model.is_multiple_of(n_heads) && (d_model / n_heads).is_multiple_of(2),
            "integer AttentionConfig: d_model {d_model} must be n_heads {n_heads} times an even number"
        );
        let layer = || RoundedLinearConfig::new(d_model, d_model).with_bias(false).init(device);
        Attention {
            norm: MeanNormConfig::new(d_model).init(device),
            query: layer(),
            key: layer(),
            value: layer(),
            output: layer(),
            n_heads,
        }
    }
}

/// `x ← rescale(x + output(attend(norm(x))))`: causal multi-head attention with rotary positions, each head's queries and keys rescaled
/// ([`ops::integer::attention`](eggroll_core::ops::integer::attention)).
#[derive(Module, Debug)]
pub struct Attention {
    /// Before the layers.
    pub norm: MeanNorm,
    /// `[d_model, d_model]`
    pub query: RoundedLinear,
    /// `[d_model, d_model]`
    pub key: RoundedLinear,
    /// `[d_model, d_model]`
    pub value: RoundedLinear,
    /// `[d_model, d_model]`
    pub output: RoundedLinear,
    /// Heads.
    pub n_heads: usize,
}

/// Keys, turned, and values of positions: `[batch, positions, d_model]` each.
#[derive(Clone, Debug)]
pub(super) struct KeysValues {
    pub(super) keys: Tensor<3, Int>,
    pub(super) values: Tensor<3, Int>,
}

impl KeysValues {
    /// Positions that are held.
    pub(super) fn positions(&self) -> usize {
        self.keys.dims()[1]
    }
}

impl Attention {
    /// Attends to the positions of the input; each position attends up to itself.
    ///
    /// # Shapes
    ///
    /// - input and output: `[batch, steps, d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, and for more than 2,048 steps.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3, Int>) -> Tensor<3, Int> {
        self.attend(input, None, &mut |_, _| {}).0
    }

    /// Attends to earlier positions too; returns the keys and values of all. Shows all activations to `observe`, with queries and keys turned
    /// and rescaled.
    #[track_caller]
    pub(super) fn attend(
        &self,
        input: Tensor<3, Int>,
        past: Option<KeysValues>,
        observe: Observe<'_, 3>,
    ) -> (Tensor<3, Int>, KeysValues) {
        let [batch, steps, width] = input.dims();
        let first = past.as_ref().map_or(0, KeysValues::positions);
        let x = self.norm.forward(input.clone());
        observe("norm", &x);
        let turned = |layer: &RoundedLinear| {
            by_row(layer.forward(x.clone()), |x| integer::rotary(x, steps, first, self.n_heads))
        };
        let query = turned(&self.query);
        let (key, value) = acts_later(|| (turned(&self.key), self.value.forward(x.clone())));
        observe("query", &query);
        observe("key", &key);
        observe("value", &value);
        let all = match past {
            None => KeysValues { keys: key, values: value },
            Some(past) => KeysValues {
                keys: Tensor::cat(vec![past.keys, key], 1),
                values: Tensor::cat(vec![past.values, value], 1),
            },
        };
        let attended = integer::attention(
            query.reshape([batch * steps, width]),
            all.keys.clone(),
            all.values.clone(),
            self.n_heads,
        );
        let attended = attended.reshape([batch, steps, width]);
        observe("attended", &attended);
        let y = self.output.forward(attended);
        observe("output", &y);
        let sum = residual(input, y);
        observe("sum", &sum);
        (sum, all)
    }
}
