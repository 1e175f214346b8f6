//! The minimal GRU in floating point.

use crate::check::check;
use crate::gate_controller::{at_step, initial_state, no_steps, stack_steps};
use crate::{Linear, LinearConfig};
use burn::config::Config;
use burn::module::Module;
use burn::nn::Initializer;
use burn::tensor::activation::{sigmoid, tanh};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::scope::acts_later;

/// Configuration of a [`MinimalGru`].
#[derive(Config, Debug)]
pub struct MinimalGruConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// If the gates should have a bias.
    #[config(default = true)]
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::XavierNormal{gain:1.0}")]
    pub initializer: Initializer,
}

impl MinimalGruConfig {
    /// Initializes a new [`MinimalGru`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> MinimalGru {
        check(
            "MinimalGruConfig",
            self,
            &[
                &[("d_input", self.d_input), ("d_hidden", self.d_hidden)],
                &[("d_hidden", self.d_hidden), ("d_hidden", self.d_hidden)],
            ],
        );
        let layer = |d_input: usize, bias: bool| {
            let config = LinearConfig::new(d_input, self.d_hidden).with_bias(bias);
            config.with_initializer(self.initializer.clone()).init(device)
        };
        MinimalGru {
            forget_input: layer(self.d_input, self.bias),
            forget_hidden: layer(self.d_hidden, false),
            candidate_input: layer(self.d_input, self.bias),
            candidate_hidden: layer(self.d_hidden, false),
        }
    }
}

/// A GRU with one gate, the float counterpart of [`integer::MinimalGru`](crate::integer::MinimalGru):
///
/// - `f = σ(x·W_f + h·U_f + b_f)`
/// - `c = tanh(x·W_h + (f·h)·U_h + b_h)`
/// - `h' = h + f·(c − h)`
///
/// Inside `evaluate` under the weights of every member. Both input layers run over all steps at once; what a step adds is two
/// products.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::MinimalGruConfig;
///
/// let device = Device::flex();
/// let module = MinimalGruConfig::new(4, 3).init(&device);
/// let (states, last) = module.forward(Tensor::ones([2, 5, 4], &device), None, None);
/// assert_eq!((states.dims(), last.dims()), ([2, 5, 3], [2, 3]));
/// ```
///
/// # References
///
/// Heck and Salem, "Simplified Minimal Gated Unit Variations for Recurrent Neural Networks", arXiv 1701.03452, Eq. 3 and 4.
#[derive(Module, Debug)]
pub struct MinimalGru {
    /// `W_f`, `b_f`: `[d_input, d_hidden]`, `[d_hidden]`
    pub forget_input: Linear,
    /// `U_f`: `[d_hidden, d_hidden]`
    pub forget_hidden: Linear,
    /// `W_h`, `b_h`: `[d_input, d_hidden]`, `[d_hidden]`
    pub candidate_input: Linear,
    /// `U_h`: `[d_hidden, d_hidden]`
    pub candidate_hidden: Linear,
}

impl MinimalGru {
    /// Runs over sequences; the output of a step is its state. A sequence starts anew, from a state of 0, where `starts` is
    /// given and not 0.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, steps, d_input]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - state: `[batch, d_hidden]`, zeros if not given
    /// - starts: `[batch, steps]`
    /// - output: `[batch, steps, d_hidden]` and the last state `[batch, d_hidden]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with the shapes; inside `evaluate` also if the batch is not a multiple of the members.
    #[track_caller]
    pub fn forward(
        &self,
        input: Tensor<3>,
        state: Option<Tensor<2>>,
        starts: Option<Tensor<2, Int>>,
    ) -> (Tensor<3>, Tensor<2>) {
        acts_later(|| self.steps(input, state, starts))
    }

    #[track_caller]
    fn steps(
        &self,
        input: Tensor<3>,
        state: Option<Tensor<2>>,
        starts: Option<Tensor<2, Int>>,
    ) -> (Tensor<3>, Tensor<2>) {
        let [batch, steps, _] = input.dims();
        let [d_hidden, _] = self.forget_hidden.weight.dims();
        let mut hidden = initial_state(state, &input, d_hidden);
        if steps == 0 {
            return (no_steps(&hidden), hidden);
        }
        let kept = starts.map(|starts| {
            let found = starts.dims();
            assert!(found == [batch, steps], "minimal GRU: starts {found:?} do not fit the input {:?}", input.dims());
            starts.equal_elem(0).float().cast(input.dtype()).unsqueeze_dim::<3>(2) // [batch, steps, 1]
        });
        let forget_inputs = self.forget_input.forward(input.clone()); // [batch, steps, d_hidden]
        let candidate_inputs = self.candidate_input.forward(input);
        let mut states = Vec::with_capacity(steps);
        for step in 0..steps {
            if let Some(kept) = &kept {
                hidden = hidden * at_step(kept, step);
            }
            let forget = sigmoid(at_step(&forget_inputs, step) + self.forget_hidden.forward(hidden.clone()));
            let gated = self.candidate_hidden.forward(forget.clone() * hidden.clone());
            let candidate = tanh(at_step(&candidate_inputs, step) + gated);
            hidden = hidden.clone() + forget * (candidate - hidden);
            states.push(hidden.clone());
        }
        (stack_steps(states, false), hidden)
    }
}
