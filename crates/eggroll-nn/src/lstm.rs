//! The perturbed drop-in replacement of [`burn::nn::Lstm`].

use crate::activation::activate;
use crate::check::check;
use crate::drop_in::drop_in;
use crate::gate_controller::{in_time, initial_state, no_steps, stack_steps};
use crate::{GateController, Linear};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::{self, Initializer, LstmState};
use burn::tensor::{Device, Tensor};

/// Configuration of an [`Lstm`]: the same as [`burn::nn::LstmConfig`].
#[derive(Config, Debug)]
pub struct LstmConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// If the layers of the gates should have a bias.
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::XavierNormal{gain:1.0}")]
    pub initializer: Initializer,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    #[config(default = true)]
    pub batch_first: bool,
    /// Whether sequences are read from their end.
    #[config(default = false)]
    pub reverse: bool,
    /// If given, cell states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
    /// Whether the forget gate is `1 − i`, without its own parameters.
    #[config(default = false)]
    pub input_forget: bool,
    /// Activation of the input, the forget and the output gate.
    #[config(default = "ActivationConfig::Sigmoid")]
    pub gate_activation: ActivationConfig,
    /// Activation of the new cell state.
    #[config(default = "ActivationConfig::Tanh")]
    pub cell_activation: ActivationConfig,
    /// Activation of the cell state before it becomes the hidden state.
    #[config(default = "ActivationConfig::Tanh")]
    pub hidden_activation: ActivationConfig,
}

impl LstmConfig {
    /// Initializes a new [`Lstm`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Lstm {
        check(
            "LstmConfig",
            self,
            &[
                &[("d_input", self.d_input), ("d_hidden", self.d_hidden)],
                &[("d_hidden", self.d_hidden), ("d_hidden", self.d_hidden)],
            ],
        );
        nn::LstmConfig {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            bias: self.bias,
            initializer: self.initializer.clone(),
            batch_first: self.batch_first,
            reverse: self.reverse,
            clip: self.clip,
            input_forget: self.input_forget,
            gate_activation: self.gate_activation.clone(),
            cell_activation: self.cell_activation.clone(),
            hidden_activation: self.hidden_activation.clone(),
        }
        .init(device)
        .into()
    }
}

/// Long short-term memory, the same as [`burn::nn::Lstm`]; inside `evaluate` under the weights of every member:
///
/// - `i, f, o = σ(x·W + b + h·U + c)` with separate weights, or `f = 1 − i`
/// - `c' = f·c + i·tanh(x·W_g + b_g + h·U_g + c_g)`
/// - `h' = o·tanh(c')`
///
/// Inside `evaluate` the input layers run over all steps at once. Each step adds one perturbed product for each gate, half of
/// the products of the plain module. Such a product draws its noise anew at each step and holds none. For long sequences,
/// held noise ([`NoiseSourceConfig::Cached`](eggroll_core::NoiseSourceConfig::Cached)) saves the drawing.
///
/// Created by [`LstmConfig`] or from a [`burn::nn::Lstm`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::{Lstm, LstmConfig};
///
/// let device = Device::flex();
/// let burn_module = burn::nn::LstmConfig::new(4, 3, true).init(&device);
/// let module = Lstm::from(burn_module.clone());
/// let x = Tensor::<3>::ones([2, 5, 4], &device);
/// let (states, last) = module.forward(x.clone(), None);
/// assert_eq!(states.into_data(), burn_module.forward(x, None).0.into_data());
/// assert_eq!(last.cell.dims(), [2, 3]);
/// ```
///
/// # References
///
/// Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Lstm {
    /// The input gate `i`.
    pub input_gate: GateController,
    /// The forget gate `f`; `None` if it is coupled to the input gate.
    pub forget_gate: Option<GateController>,
    /// The output gate `o`.
    pub output_gate: GateController,
    /// The new cell state.
    pub cell_gate: GateController,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    pub batch_first: bool,
    /// Whether sequences are read from their end.
    pub reverse: bool,
    /// If given, cell states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
    /// Whether the forget gate is `1 − i`.
    pub input_forget: bool,
    /// Activation of the input, the forget and the output gate.
    pub gate_activation: Activation,
    /// Activation of the new cell state.
    pub cell_activation: Activation,
    /// Activation of the cell state before it becomes the hidden state.
    pub hidden_activation: Activation,
}

impl Lstm {
    /// The hidden states of all steps, and the state to continue from.
    ///
    /// # Shapes
    ///
    /// - batched_input: `[batch, steps, d_input]`, or `[steps, batch, d_input]` if not `batch_first`; inside `evaluate` the
    ///   batch is `members · rows`, member-major
    /// - state: `[batch, d_hidden]` each, zeros if not given
    /// - output: `[batch, steps, d_hidden]` or `[steps, batch, d_hidden]`, and a state like the one given
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, or if there is neither a forget gate nor a coupled one. Inside `evaluate` also if the
    /// batch is not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<LstmState<2>>) -> (Tensor<3>, LstmState<2>) {
        if self.is_active() {
            let swap = |sequences: Tensor<3>| if self.batch_first { sequences } else { sequences.swap_dims(0, 1) };
            let (states, last) = self.run(swap(batched_input), state, self.reverse);
            (swap(states), last)
        } else {
            nn::Lstm::from(self.clone()).forward(batched_input, state)
        }
    }

    /// Whether a gate is perturbed on this thread now.
    pub(crate) fn is_active(&self) -> bool {
        let gates = [&self.input_gate, &self.output_gate, &self.cell_gate];
        gates.into_iter().chain(&self.forget_gate).any(GateController::is_active)
    }

    /// The module with its input layers applied to all steps at once, for `[batch, steps, d_input]`; from the end if
    /// `reverse`.
    #[track_caller]
    pub(crate) fn run(
        &self,
        input: Tensor<3>,
        state: Option<LstmState<2>>,
        reverse: bool,
    ) -> (Tensor<3>, LstmState<2>) {
        in_time(reverse, || self.steps(input, state, reverse))
    }

    #[track_caller]
    fn steps(&self, input: Tensor<3>, state: Option<LstmState<2>>, reverse: bool) -> (Tensor<3>, LstmState<2>) {
        let [_, steps, _] = input.dims();
        let (cell, hidden) = state.map(LstmState::unpack).unzip();
        let mut cell = initial_state(cell, &input, self.d_hidden); // [batch, d_hidden]
        let mut hidden = initial_state(hidden, &input, self.d_hidden);
        if steps == 0 {
            return (no_steps(&hidden), LstmState::new(cell, hidden));
        }
        let inputs = |gate: &GateController| gate.input_transform.forward(input.clone()); // [batch, steps, d_hidden]
        let input_inputs = inputs(&self.input_gate);
        let forget = self.own_forget_gate().map(|gate| (gate, inputs(gate)));
        let (output_inputs, cell_inputs) = (inputs(&self.output_gate), inputs(&self.cell_gate));
        let mut states = Vec::with_capacity(steps);
        for index in 0..steps {
            let step = if reverse { steps - 1 - index } else { index };
            let gate = |gate: &GateController, inputs: &Tensor<3>| {
                activate(&self.gate_activation, gate.at(step, inputs, hidden.clone()))
            };
            let input = gate(&self.input_gate, &input_inputs);
            let forget = match &forget {
                Some((forget, inputs)) => gate(forget, inputs),
                None => -input.clone() + 1.0,
            };
            let output = gate(&self.output_gate, &output_inputs);
            let new = activate(&self.cell_activation, self.cell_gate.at(step, &cell_inputs, hidden.clone()));
            cell = forget * cell + input * new;
            if let Some(clip) = self.clip {
                cell = cell.clamp(-clip, clip);
            }
            hidden = output * activate(&self.hidden_activation, cell.clone());
            states.push(hidden.clone());
        }
        (stack_steps(states, reverse), LstmState::new(cell, hidden))
    }

    /// The forget gate, unless it is coupled to the input gate.
    #[track_caller]
    fn own_forget_gate(&self) -> Option<&GateController> {
        if self.input_forget {
            return None;
        }
        assert!(self.forget_gate.is_some(), "LSTM: no forget gate, and none that is coupled to the input gate");
        self.forget_gate.as_ref()
    }
}

drop_in!(Lstm, nn::Lstm {
    input_gate, forget_gate => forget_gate.map(Into::into), output_gate, cell_gate, d_hidden, batch_first, reverse,
    clip, input_forget, gate_activation, cell_activation, hidden_activation,
});

impl ModuleDisplay for Lstm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let Linear { weight, bias } = &self.input_gate.input_transform;
        let [d_input, _] = weight.shape().dims();
        content.add("d_input", &d_input).add("d_hidden", &self.d_hidden).add("bias", &bias.is_some()).optional()
    }
}
