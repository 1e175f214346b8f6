//! Time mixing, in place of attention.

use super::head_norm::HeadNorm;
use super::state::LayerState;
use super::vector::{of_rows, uniform};
use crate::load::Rwkv7Config;
use burn::module::{Module, Param};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use eggroll_nn::{Linear, LinearConfig};

/// Time mixing (Peng et al., arXiv 2503.14456, Section 4.1), with the names of the reference code for its parameters.
///
/// Of a row `x` and the row before it, `x′`, with `x_□ + (x′ − x_□) ⊙ μ_□` for each of six mixes `μ`:
///
/// ```text
/// r = x_r·receptance     w = exp(−e^(−1/2)·sigmoid(w0 + tanh(x_w·w1)·w2))     a = sigmoid(a0 + x_a·a1·a2)
/// k = x_k·key            κ = k ⊙ k_k, divided by its norm in each head        k̃ = k ⊙ (1 + (a − 1) ⊙ k_a)
/// v = x_v·value, from the second layer on v + (v₁ − v) ⊙ sigmoid(v0 + x_v·v1·v2) for the first layer's v₁
/// g = sigmoid(x_g·g1)·g2
/// S ← diag(w)·S − (a ⊙ κ)·(κᵀ·S) + k̃·vᵀ      in each head; S : [head_dim of keys, head_dim of values], the transpose of the paper's
/// y = (ln_x(Sᵀ·r) + (r·(k̃ ⊙ r_k))·v) ⊙ g·output
/// ```
#[derive(Module, Debug)]
pub struct TimeMix {
    /// The mix of the receptance, `[hidden_size]`, as the next five.
    pub x_r: Param<Tensor<1>>,
    /// The mix of the decay.
    pub x_w: Param<Tensor<1>>,
    /// The mix of keys.
    pub x_k: Param<Tensor<1>>,
    /// The mix of values.
    pub x_v: Param<Tensor<1>>,
    /// The mix of the in-context learning rate.
    pub x_a: Param<Tensor<1>>,
    /// The mix of the gate.
    pub x_g: Param<Tensor<1>>,
    /// The decay's bias, `[hidden_size]`.
    pub w0: Param<Tensor<1>>,
    /// `[hidden_size, decay_rank]`
    pub w1: Linear,
    /// `[decay_rank, hidden_size]`
    pub w2: Linear,
    /// The in-context learning rate's bias, `[hidden_size]`.
    pub a0: Param<Tensor<1>>,
    /// `[hidden_size, a_rank]`
    pub a1: Linear,
    /// `[a_rank, hidden_size]`
    pub a2: Linear,
    /// The bias of the first layer's share of the value, `[hidden_size]`; `None` in the first layer, as the next two.
    pub v0: Option<Param<Tensor<1>>>,
    /// `[hidden_size, v_rank]`
    pub v1: Option<Linear>,
    /// `[v_rank, hidden_size]`
    pub v2: Option<Linear>,
    /// `[hidden_size, gate_rank]`
    pub g1: Linear,
    /// `[gate_rank, hidden_size]`
    pub g2: Linear,
    /// The removal key's scale, `[hidden_size]`.
    pub k_k: Param<Tensor<1>>,
    /// Share of the in-context learning rate in the replacement key, `[hidden_size]`.
    pub k_a: Param<Tensor<1>>,
    /// The weight of a row's own value, `[hidden_size]`.
    pub r_k: Param<Tensor<1>>,
    /// `[hidden_size, hidden_size]`
    pub receptance: Linear,
    /// `[hidden_size, hidden_size]`
    pub key: Linear,
    /// `[hidden_size, hidden_size]`
    pub value: Linear,
    /// `[hidden_size, hidden_size]`
    pub output: Linear,
    /// Normalization of every head.
    pub ln_x: HeadNorm,
    #[module(skip)]
    head_dim: usize,
}

impl TimeMix {
    pub(super) fn new(config: &Rwkv7Config, layer: usize, device: &Device) -> Self {
        let hidden = config.hidden_size;
        let vector = |min, max| uniform(hidden, (min, max), device);
        let linear = |d_input, d_output| LinearConfig::new(d_input, d_output).with_bias(false).init(device);
        Self {
            x_r: vector(0.0, 1.0),
            x_w: vector(0.0, 1.0),
            x_k: vector(0.0, 1.0),
            x_v: vector(0.0, 1.0),
            x_a: vector(0.0, 1.0),
            x_g: vector(0.0, 1.0),
            w0: vector(-6.0, 1.0),
            w1: linear(hidden, config.decay_rank),
            w2: linear(config.decay_rank, hidden),
            a0: vector(-0.5, 0.5),
            a1: linear(hidden, config.a_rank),
            a2: linear(config.a_rank, hidden),
            v0: (layer > 0).then(|| vector(0.5, 1.0)),
            v1: (layer > 0).then(|| linear(hidden, config.v_rank)),
            v2: (layer > 0).then(|| linear(config.v_rank, hidden)),
            g1: linear(hidden, config.gate_rank),
            g2: linear(config.gate_rank, hidden),
            k_k: vector(0.5, 1.0),
            k_a: vector(0.9, 1.1),
            r_k: vector(-0.2, 0.2),
            receptance: linear(hidden, hidden),
            key: linear(hidden, hidden),
            value: linear(hidden, hidden),
            output: linear(hidden, hidden),
            ln_x: HeadNorm::new(hidden, config.head_dim as f64 * config.norm_eps, device),
            head_dim: config.head_dim,
        }
    }

    /// `[rows, length, hidden_size]` to the same; `first` is the first layer's value, which it sets.
    pub(super) fn forward(&self, x: Tensor<3>, state: &mut LayerState, first: &mut Option<Tensor<3>>) -> Tensor<3> {
        let [rows, length, hidden] = x.dims();
        let (head_dim, heads) = (self.head_dim, hidden / self.head_dim);
        let difference = shifted(x.clone(), &mut state.attention) - x.clone();
        let mixed = |mix| x.clone() + difference.clone() * of_rows(mix, rows);
        let split = |y: Tensor<3>| y.reshape([rows, length, heads, head_dim]);
        let r = self.receptance.forward(mixed(&self.x_r));
        let w = self.w2.forward(self.w1.forward(mixed(&self.x_w)).tanh()) + of_rows(&self.w0, rows);
        let w = (sigmoid(w) * -(-0.5f64).exp()).exp();
        let k = self.key.forward(mixed(&self.x_k));
        let x_v = mixed(&self.x_v);
        let mut v = self.value.forward(x_v.clone());
        if let (Some(v0), Some(v1), Some(v2), Some(first)) = (&self.v0, &self.v1, &self.v2, first.as_ref()) {
            let share = sigmoid(v2.forward(v1.forward(x_v)) + of_rows(v0, rows));
            v = v.clone() + (first.clone() - v) * share;
        }
        first.get_or_insert_with(|| v.clone());
        let a = sigmoid(self.a2.forward(self.a1.forward(mixed(&self.x_a))) + of_rows(&self.a0, rows));
        let g = self.g2.forward(sigmoid(self.g1.forward(mixed(&self.x_g))));
        let removal = split(k.clone() * of_rows(&self.k_k, rows));
        let norm = (removal.clone() * removal.clone()).sum_dim(3).sqrt().clamp_min(1e-12); // [rows, length, heads, 1]
        let removal = removal / norm;
        let k = k.clone() + k * (a.clone() - 1.0) * of_rows(&self.k_a, rows);
        // The weight of a row's own value: [rows, length, heads, 1].
        let own = split(r.clone() * k.clone() * of_rows(&self.r_k, rows)).sum_dim(3);
        let (r, v) = (split(r), split(v));
        let rate = removal.clone() * split(a);
        let y = recurrence([&r, &split(w), &split(k), &v, &removal, &rate], &mut state.wkv);
        let y = self.ln_x.forward(y) + (own * v).reshape([rows, length, hidden]);
        self.output.forward(y * g)
    }
}

/// The rows before: the last one of the sequence so far, then all but the last; keeps that.
pub(super) fn shifted(x: Tensor<3>, last: &mut Tensor<2>) -> Tensor<3> {
    let [_, length, _] = x.dims();
    let before = last.clone().unsqueeze_dim(1); // [rows, 1, hidden_size]
    *last = x.clone().slice_dim(1, length - 1..length).squeeze_dim(1);
    match length {
        1 => before,
        _ => Tensor::cat(vec![before, x.slice_dim(1, 0..length - 1)], 1),
    }
}

/// The recurrence over all positions: `r, w, k, v, κ` and `a ⊙ κ`, `[rows, length, heads, head_dim]`, to the same; `state` is `[rows, heads,
/// head_dim of keys, head_dim of values]`.
fn recurrence(inputs: [&Tensor<4>; 6], state: &mut Tensor<4>) -> Tensor<4> {
    let length = inputs[0].dims()[1];
    let step = |position: usize| {
        let at = |input: &Tensor<4>| input.clone().slice_dim(1, position..position + 1).swap_dims(1, 2);
        let [r, w, k, v, removal, rate] = inputs.map(at); // [rows, heads, 1, head_dim]
        let [r, w, k, removal, rate] = [r, w, k, removal, rate].map(|keys| keys.swap_dims(2, 3)); // [rows, heads, head_dim, 1]
        let removed = (state.clone() * removal).sum_dim(2); // [rows, heads, 1, head_dim]
        *state = state.clone() * w - rate * removed + k * v;
        (state.clone() * r).sum_dim(2).swap_dims(1, 2) // [rows, 1, heads, head_dim]
    };
    Tensor::cat((0..length).map(step).collect(), 1)
}
