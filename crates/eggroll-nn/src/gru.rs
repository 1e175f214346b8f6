//! The perturbed drop-in replacement of [`burn::nn::Gru`].

use crate::activation::activate;
use crate::check::check;
use crate::drop_in::drop_in;
use crate::gate_controller::{at_step, in_time, initial_state, no_steps, stack_steps};
use crate::{GateController, Linear};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::{self, Initializer};
use burn::tensor::{Device, Tensor};

/// Configuration of a [`Gru`]: the same as [`burn::nn::GruConfig`].
#[derive(Config, Debug)]
pub struct GruConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// If the layers of the gates should have a bias.
    pub bias: bool,
    /// Whether the reset gate is applied after the product with the state's weight, or before.
    #[config(default = "true")]
    pub reset_after: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::XavierNormal{gain:1.0}")]
    pub initializer: Initializer,
    /// Activation of the update and the reset gate.
    #[config(default = "ActivationConfig::Sigmoid")]
    pub gate_activation: ActivationConfig,
    /// Activation of the new state.
    #[config(default = "ActivationConfig::Tanh")]
    pub hidden_activation: ActivationConfig,
    /// If given, states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
}

impl GruConfig {
    /// Initializes a new [`Gru`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Gru {
        check(
            "GruConfig",
            self,
            &[
                &[("d_input", self.d_input), ("d_hidden", self.d_hidden)],
                &[("d_hidden", self.d_hidden), ("d_hidden", self.d_hidden)],
            ],
        );
        nn::GruConfig {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            bias: self.bias,
            reset_after: self.reset_after,
            initializer: self.initializer.clone(),
            gate_activation: self.gate_activation.clone(),
            hidden_activation: self.hidden_activation.clone(),
            clip: self.clip,
        }
        .init(device)
        .into()
    }
}

/// Gated recurrent unit, the same as [`burn::nn::Gru`]; inside `evaluate` under the weights of every member:
///
/// - `z = σ(x·W_z + b_z + h·U_z + c_z)`, `r = σ(x·W_r + b_r + h·U_r + c_r)`
/// - `n = tanh(x·W_n + b_n + r·(h·U_n + c_n))`, or with the reset before the product `tanh(x·W_n + b_n + (r·h)·U_n + c_n)`
/// - `h' = (1 − z)·n + z·h`
///
/// Inside `evaluate` the input layers run over all steps at once. Each step adds one perturbed product for each gate, half of
/// the products of the plain module. Such a product draws its noise anew at each step and holds none. For long sequences,
/// held noise ([`NoiseSourceConfig::Cached`](eggroll_core::NoiseSourceConfig::Cached)) saves the drawing.
///
/// Created by [`GruConfig`] or from a [`burn::nn::Gru`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::{Gru, GruConfig};
///
/// let device = Device::flex();
/// let burn_module = burn::nn::GruConfig::new(4, 3, true).init(&device);
/// let module = Gru::from(burn_module.clone());
/// let x = Tensor::<3>::ones([2, 5, 4], &device);
/// assert_eq!(module.forward(x.clone(), None).into_data(), burn_module.forward(x, None).into_data());
/// ```
///
/// # References
///
/// Cho et al., "Learning Phrase Representations using RNN Encoder–Decoder for Statistical Machine Translation", arXiv
/// 1406.1078.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Gru {
    /// The update gate `z`.
    pub update_gate: GateController,
    /// The reset gate `r`.
    pub reset_gate: GateController,
    /// The new state `n`.
    pub new_gate: GateController,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether the reset gate is applied after the product with the state's weight.
    pub reset_after: bool,
    /// Activation of the update and the reset gate.
    pub gate_activation: Activation,
    /// Activation of the new state.
    pub hidden_activation: Activation,
    /// If given, states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
}

impl Gru {
    /// The states of all steps; the last one is the state to continue from.
    ///
    /// # Shapes
    ///
    /// - batched_input: `[batch, steps, d_input]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - state: `[batch, d_hidden]`, zeros if not given
    /// - output: `[batch, steps, d_hidden]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit; inside `evaluate` also if the batch is not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<Tensor<2>>) -> Tensor<3> {
        if self.is_active() {
            self.run(batched_input, state, false).0
        } else {
            nn::Gru::from(self.clone()).forward(batched_input, state)
        }
    }

    /// Whether a gate is perturbed on this thread now.
    pub(crate) fn is_active(&self) -> bool {
        [&self.update_gate, &self.reset_gate, &self.new_gate].into_iter().any(GateController::is_active)
    }

    /// The module with its input layers applied to all steps at once; from the end if `reverse`. Returns the states of all
    /// steps and the last one taken.
    #[track_caller]
    pub(crate) fn run(&self, input: Tensor<3>, state: Option<Tensor<2>>, reverse: bool) -> (Tensor<3>, Tensor<2>) {
        in_time(reverse, || self.steps(input, state, reverse))
    }

    #[track_caller]
    fn steps(&self, input: Tensor<3>, state: Option<Tensor<2>>, reverse: bool) -> (Tensor<3>, Tensor<2>) {
        let [_, steps, _] = input.dims();
        let mut hidden = initial_state(state, &input, self.d_hidden); // [batch, d_hidden]
        if steps == 0 {
            return (no_steps(&hidden), hidden);
        }
        let inputs = |gate: &GateController| gate.input_transform.forward(input.clone()); // [batch, steps, d_hidden]
        let (update_inputs, reset_inputs, new_inputs) =
            (inputs(&self.update_gate), inputs(&self.reset_gate), inputs(&self.new_gate));
        let mut states = Vec::with_capacity(steps);
        for index in 0..steps {
            let step = if reverse { steps - 1 - index } else { index };
            let gate = |gate: &GateController, inputs: &Tensor<3>| {
                activate(&self.gate_activation, gate.at(step, inputs, hidden.clone()))
            };
            let update = gate(&self.update_gate, &update_inputs);
            let reset = gate(&self.reset_gate, &reset_inputs);
            let new = self.new_state(step, &new_inputs, reset, hidden.clone());
            hidden = new * (-update.clone() + 1.0) + update * hidden;
            if let Some(clip) = self.clip {
                hidden = hidden.clamp(-clip, clip);
            }
            states.push(hidden.clone());
        }
        (stack_steps(states, reverse), hidden)
    }

    #[track_caller]
    fn new_state(&self, step: usize, inputs: &Tensor<3>, reset: Tensor<2>, hidden: Tensor<2>) -> Tensor<2> {
        let sum = if self.reset_after {
            at_step(inputs, step) + reset * self.new_gate.hidden_transform.forward(hidden)
        } else {
            self.new_gate.at(step, inputs, reset * hidden)
        };
        activate(&self.hidden_activation, sum)
    }
}

drop_in!(
    Gru,
    nn::Gru { update_gate, reset_gate, new_gate, d_hidden, reset_after, gate_activation, hidden_activation, clip }
);

impl ModuleDisplay for Gru {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let Linear { weight, bias } = &self.update_gate.input_transform;
        let [d_input, _] = weight.shape().dims();
        content
            .add("d_input", &d_input)
            .add("d_hidden", &self.d_hidden)
            .add("bias", &bias.is_some())
            .add("reset_after", &self.reset_after)
            .optional()
    }
}
