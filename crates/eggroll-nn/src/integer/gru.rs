//! The minimal GRU.

use super::{constant_vector, noise, normal_matrix};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{self, Gate, Rounding};

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
    /// Panics if a size is 0 or larger than memory, or f32 cannot hold a number, with the field.
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
    /// - input: `[batch, steps, d_model]`; inside `evaluate` one sequence for each member
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
        let rows = input.reshape([batch * steps, width]);
        let gate = |input: &Param<Tensor<2, Int>>, hidden: &Param<Tensor<2, Int>>, bias: &Param<Tensor<1, Int>>| Gate {
            input: integer::linear(
                rows.clone(),
                input.val(),
                noise(input, batch * steps),
                None,
                false,
                Rounding::Floor,
            ),
            weight: hidden.val(),
            weight_noise: noise(hidden, batch * steps),
            bias: bias.val(),
            bias_noise: noise(bias, batch * steps),
        };
        let forget = gate(&self.forget_input, &self.forget_hidden, &self.forget_bias);
        let candidate = gate(&self.candidate_input, &self.candidate_hidden, &self.candidate_bias);
        if steps == 0 {
            return (Tensor::zeros([batch, 0, width], (&state.device(), state.dtype())), state);
        }
        let states = integer::gru(state, starts.reshape([batch * steps]), forget, candidate);
        let states = states.reshape([batch, steps, width]);
        let last = states.clone().slice([0..batch, steps - 1..steps, 0..width]).reshape([batch, width]);
        (states, last)
    }
}
