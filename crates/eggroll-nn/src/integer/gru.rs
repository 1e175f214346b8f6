//! The minimal GRU.

use super::{constant_vector, normal_matrix, perturbed, vector_noise};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::integer::INT8_LIMIT;
use eggroll_core::ops::integer::{self, Gate, Rounding};
use eggroll_core::scope::{IntegerInput, acts_later};

/// Configuration of a [`MinimalGru`].
#[derive(Config, Debug)]
pub struct MinimalGruConfig {
    /// The size of inputs and states.
    pub d_model: usize,
}

impl MinimalGruConfig {
    /// A layer with weights `round(16·N(0, 1))` and biases 0.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> MinimalGru {
        check("integer MinimalGruConfig", self, &[&[("d_model", self.d_model), ("d_model", self.d_model)]]);
        let matrix = || normal_matrix([self.d_model, self.d_model], device);
        let bias = || constant_vector(self.d_model, 0, device);
        MinimalGru {
            forget_input: matrix(),
            forget_hidden: matrix(),
            forget_bias: bias(),
            candidate_input: matrix(),
            candidate_hidden: matrix(),
            candidate_bias: bias(),
        }
    }
}

/// A minimal GRU whose sigmoid and tanh are the identity, with an input and a recurrent matrix for each of its two gates:
///
/// - `f = clip(x·W_f + h·U_f + b_f)`, `g = ⌊(f + 127)·h / 2⁸⌋`
/// - `c = clip(x·W_h + g·U_h + b_h)`, `h' = h + ⌊(f + 127)·(c − h) / 2⁸⌋`
///
/// Products are divided as in [`Linear`](super::Linear); inside `evaluate` all parameters are perturbed for every member
/// ([`ops::integer::gru`](eggroll_core::ops::integer::gru)).
///
/// # References
///
/// Heck and Salem, "Simplified Minimal Gated Unit Variations for Recurrent Neural Networks", arXiv 1701.03452.
#[derive(Module, Debug)]
pub struct MinimalGru {
    /// `W_f`: `[d_model, d_model]`
    pub forget_input: Param<Tensor<2, Int>>,
    /// `U_f`: `[d_model, d_model]`
    pub forget_hidden: Param<Tensor<2, Int>>,
    /// `b_f`: `[d_model]`
    pub forget_bias: Param<Tensor<1, Int>>,
    /// `W_h`: `[d_model, d_model]`
    pub candidate_input: Param<Tensor<2, Int>>,
    /// `U_h`: `[d_model, d_model]`
    pub candidate_hidden: Param<Tensor<2, Int>>,
    /// `b_h`: `[d_model]`
    pub candidate_bias: Param<Tensor<1, Int>>,
}

impl MinimalGru {
    /// Runs over sequences; the output of a step is its state. A sequence starts anew, from a state of 0, where `starts` is
    /// not 0.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, steps, d_model]`; inside `evaluate` the first axis is `members · sequences`, member-major
    /// - state: `[batch, d_model]`
    /// - starts: `[batch, steps]`
    /// - output: `[batch, steps, d_model]` and the last state `[batch, d_model]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with the shapes.
    #[track_caller]
    pub fn forward(
        &self,
        input: Tensor<3, Int>,
        state: Tensor<2, Int>,
        starts: Tensor<2, Int>,
    ) -> (Tensor<3, Int>, Tensor<2, Int>) {
        let [batch, steps, width] = input.dims();
        let (rows, starts) = (input.reshape([batch * steps, width]), starts.reshape([batch * steps]));
        let product = |weight: &Param<Tensor<2, Int>>| {
            let (values, weight) = (weight.val(), perturbed(weight, batch * steps));
            weight.given(|| IntegerInput::Rows(rows.clone()));
            let y = integer::linear(rows.clone(), values, weight.noise.clone(), None, false, Rounding::Floor);
            weight.made(y)
        };
        let hidden = [&self.forget_hidden, &self.candidate_hidden].map(|weight| perturbed(weight, batch * steps));
        let gate = |input: &Param<Tensor<2, Int>>, number: usize, bias: &Param<Tensor<1, Int>>| Gate {
            input: product(input),
            weight: [&self.forget_hidden, &self.candidate_hidden][number].val(),
            weight_noise: hidden[number].noise.clone(),
            bias: bias.val(),
            bias_noise: vector_noise(bias, batch * steps),
        };
        // A state acts on those after it.
        let states = acts_later(|| {
            let forget = gate(&self.forget_input, 0, &self.forget_bias);
            let candidate = gate(&self.candidate_input, 1, &self.candidate_bias);
            if steps == 0 {
                return None;
            }
            let states = integer::gru(state.clone(), starts.clone(), forget.clone(), candidate);
            let before = || states_before(&states, state.clone(), &starts);
            hidden[0].given(|| IntegerInput::Rows(before()));
            hidden[1].given(|| IntegerInput::Rows(gated(before(), &forget)));
            Some(states)
        });
        let Some(states) = states else {
            return (Tensor::zeros([batch, 0, width], (&state.device(), state.dtype())), state);
        };
        let states = states.reshape([batch, steps, width]);
        let last = states.clone().slice([0..batch, steps - 1..steps, 0..width]).reshape([batch, width]);
        (states, last)
    }
}

/// The state `h` before every step, which multiplies the forget gate's recurrent weight: `[batch · steps, width]`.
fn states_before(states: &Tensor<2, Int>, first: Tensor<2, Int>, starts: &Tensor<1, Int>) -> Tensor<2, Int> {
    let ([batch, width], [rows], dtype) = (first.dims(), starts.dims(), states.dtype());
    let steps = rows / batch;
    let earlier = states.clone().reshape([batch, steps, width]).slice_dim(1, 0..steps - 1);
    let before = Tensor::cat(vec![first.cast(dtype).reshape([batch, 1, width]), earlier], 1).reshape([rows, width]);
    let begins = starts.clone().not_equal_elem(0).reshape([rows, 1]).expand([rows, width]);
    before.mask_fill(begins, 0)
}

/// `g = ⌊(f + 127)·h / 2⁸⌋` of members without noise, which multiplies the candidate's recurrent weight.
fn gated(before: Tensor<2, Int>, forget: &Gate) -> Tensor<2, Int> {
    let ([_, width], dtype) = (before.dims(), before.dtype());
    let product = integer::linear(before.clone(), forget.weight.clone(), None, None, false, Rounding::Floor);
    // Sums of int8 fit float32.
    let float = |values: Tensor<2, Int>| values.float().cast(DType::F32);
    let bias = float(forget.bias.clone().reshape([1, width]));
    let forgets = (float(forget.input.clone()) + float(product) + bias).clamp(-INT8_LIMIT, INT8_LIMIT);
    ((forgets + INT8_LIMIT) * float(before) / 256.0).floor().int().cast(dtype)
}
