//! The perturbed drop-in replacement of [`burn::nn::BiLstm`].

use crate::check::check;
use crate::drop_in::drop_in;
use crate::{Linear, Lstm};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::activation::ActivationConfig;
use burn::nn::{self, Initializer, LstmState};
use burn::tensor::{Device, Tensor};

/// Configuration of a [`BiLstm`]: the same as [`burn::nn::BiLstmConfig`].
#[derive(Config, Debug)]
pub struct BiLstmConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// If the layers of the gates should have a bias.
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::XavierNormal{gain:1.0}")]
    pub initializer: Initializer,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    #[config(default = true)]
    pub batch_first: bool,
    /// If given, cell states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
    /// Whether forget gates are `1 − i`, without its own parameters.
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

impl BiLstmConfig {
    /// Initializes a new [`BiLstm`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> BiLstm {
        check(
            "BiLstmConfig",
            self,
            &[
                &[("d_input", self.d_input), ("d_hidden", self.d_hidden)],
                &[("d_hidden", self.d_hidden), ("d_hidden", self.d_hidden)],
            ],
        );
        nn::BiLstmConfig {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            bias: self.bias,
            initializer: self.initializer.clone(),
            batch_first: self.batch_first,
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

/// Two [`Lstm`]s that read sequences from either end, the same as [`burn::nn::BiLstm`]; inside `evaluate` under the weights
/// of every member.
///
/// Created by [`BiLstmConfig`] or from a [`burn::nn::BiLstm`]; fields and records are the same.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BiLstm {
    /// From the beginning.
    pub forward: Lstm,
    /// From the end.
    pub reverse: Lstm,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    pub batch_first: bool,
}

impl BiLstm {
    /// The hidden states of all steps, both directions side by side, and the final states of both directions.
    ///
    /// # Shapes
    ///
    /// - batched_input: `[batch, steps, d_input]`, or `[steps, batch, d_input]` if not `batch_first`; inside `evaluate` the
    ///   batch is `members · rows`, member-major
    /// - state: `[2, batch, d_hidden]` each, zeros if not given
    /// - output: `[batch, steps, 2 · d_hidden]` or `[steps, batch, 2 · d_hidden]`, and a state like the one given
    ///
    /// # Panics
    ///
    /// As [`Lstm::forward`].
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<LstmState<3>>) -> (Tensor<3>, LstmState<3>) {
        if !self.forward.is_active() && !self.reverse.is_active() {
            return nn::BiLstm::from(self.clone()).forward(batched_input, state);
        }
        let swap = |sequences: Tensor<3>| if self.batch_first { sequences } else { sequences.swap_dims(0, 1) };
        let input = swap(batched_input);
        let of = |direction: usize| {
            let part = |state: Tensor<3>| state.slice_dim(0, direction..direction + 1).squeeze_dim::<2>(0);
            state.clone().map(|state| state.map_state(part))
        };
        let (forward, forward_last) = self.forward.run(input.clone(), of(0), false);
        let (reverse, reverse_last) = self.reverse.run(input, of(1), true);
        (swap(Tensor::cat(vec![forward, reverse], 2)), LstmState::stack(vec![forward_last, reverse_last], 0))
    }
}

drop_in!(BiLstm, nn::BiLstm { forward, reverse, d_hidden, batch_first });

impl ModuleDisplay for BiLstm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let Linear { weight, bias } = &self.forward.input_gate.input_transform;
        let [d_input, _] = weight.shape().dims();
        content.add("d_input", &d_input).add("d_hidden", &self.d_hidden).add("bias", &bias.is_some()).optional()
    }
}
