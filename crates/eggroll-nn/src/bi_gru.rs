//! The perturbed drop-in replacement of [`burn::nn::BiGru`].

use crate::check::check;
use crate::drop_in::drop_in;
use crate::{Gru, Linear};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::activation::ActivationConfig;
use burn::nn::{self, Initializer};
use burn::tensor::{Device, Tensor};

/// Configuration of a [`BiGru`]: the same as [`burn::nn::BiGruConfig`].
#[derive(Config, Debug)]
pub struct BiGruConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// If the layers of the gates should have a bias.
    pub bias: bool,
    /// Whether the reset gate is applied after the product with the state's weight, or before.
    #[config(default = "true")]
    pub reset_after: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::XavierNormal{gain:1.0}")]
    pub initializer: Initializer,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    #[config(default = true)]
    pub batch_first: bool,
    /// Activation of the update and the reset gate.
    #[config(default = "ActivationConfig::Sigmoid")]
    pub gate_activation: ActivationConfig,
    /// Activation of the new state.
    #[config(default = "ActivationConfig::Tanh")]
    pub hidden_activation: ActivationConfig,
    /// If given, states are clamped to `[-clip, clip]` after every step.
    pub clip: Option<f64>,
}

impl BiGruConfig {
    /// Initializes a new [`BiGru`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> BiGru {
        check(
            "BiGruConfig",
            self,
            &[
                &[("d_input", self.d_input), ("d_hidden", self.d_hidden)],
                &[("d_hidden", self.d_hidden), ("d_hidden", self.d_hidden)],
            ],
        );
        nn::BiGruConfig {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            bias: self.bias,
            reset_after: self.reset_after,
            initializer: self.initializer.clone(),
            batch_first: self.batch_first,
            gate_activation: self.gate_activation.clone(),
            hidden_activation: self.hidden_activation.clone(),
            clip: self.clip,
        }
        .init(device)
        .into()
    }
}

/// Two [`Gru`]s that read sequences from either end, the same as [`burn::nn::BiGru`]; inside `evaluate` under the weights of
/// every member.
///
/// Created by [`BiGruConfig`] or from a [`burn::nn::BiGru`]; fields and records are the same.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BiGru {
    /// From the beginning.
    pub forward: Gru,
    /// From the end.
    pub reverse: Gru,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether inputs and outputs are `[batch, steps, ...]`, or `[steps, batch, ...]`.
    pub batch_first: bool,
}

impl BiGru {
    /// The states of all steps, both directions side by side, and the final states of both directions.
    ///
    /// # Shapes
    ///
    /// - batched_input: `[batch, steps, d_input]`, or `[steps, batch, d_input]` if not `batch_first`; inside `evaluate` the
    ///   batch is `members · rows`, member-major
    /// - state: `[2, batch, d_hidden]`, zeros if not given
    /// - output: `[batch, steps, 2 · d_hidden]` or `[steps, batch, 2 · d_hidden]`, and `[2, batch, d_hidden]`
    ///
    /// # Panics
    ///
    /// As [`Gru::forward`].
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<Tensor<3>>) -> (Tensor<3>, Tensor<3>) {
        if !self.forward.is_active() && !self.reverse.is_active() {
            return nn::BiGru::from(self.clone()).forward(batched_input, state);
        }
        let swap = |sequences: Tensor<3>| if self.batch_first { sequences } else { sequences.swap_dims(0, 1) };
        let input = swap(batched_input);
        let of = |direction: usize| {
            state.clone().map(|state| state.slice_dim(0, direction..direction + 1).squeeze_dim::<2>(0))
        };
        let (forward, forward_last) = self.forward.run(input.clone(), of(0), false);
        let (reverse, reverse_last) = self.reverse.run(input, of(1), true);
        (swap(Tensor::cat(vec![forward, reverse], 2)), Tensor::stack(vec![forward_last, reverse_last], 0))
    }
}

drop_in!(BiGru, nn::BiGru { forward, reverse, d_hidden, batch_first });

impl ModuleDisplay for BiGru {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let Linear { weight, bias } = &self.forward.update_gate.input_transform;
        let [d_input, _] = weight.shape().dims();
        content.add("d_input", &d_input).add("d_hidden", &self.d_hidden).add("bias", &bias.is_some()).optional()
    }
}
