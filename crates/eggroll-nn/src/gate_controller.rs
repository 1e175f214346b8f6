//! The perturbed drop-in replacement of [`burn::nn::GateController`], and shared code of recurrent modules.

use crate::Linear;
use crate::drop_in::drop_in;
use burn::module::Module;
use burn::nn::{self, Initializer};
use burn::tensor::{Device, Tensor};
use eggroll_core::scope;

/// A gate of a recurrent module, the same as [`burn::nn::GateController`]: a layer for the input and one for the state.
#[derive(Module, Debug)]
pub struct GateController {
    /// The layer applied to the input.
    pub input_transform: Linear,
    /// The layer applied to the hidden state.
    pub hidden_transform: Linear,
}

impl GateController {
    /// Initializes a new gate; both layers have a bias or none.
    pub fn new(d_input: usize, d_output: usize, bias: bool, initializer: Initializer, device: &Device) -> Self {
        nn::GateController::new(d_input, d_output, bias, initializer, device).into()
    }

    /// Whether a layer of the gate is perturbed on this thread now.
    pub(crate) fn is_active(&self) -> bool {
        [&self.input_transform, &self.hidden_transform].iter().any(|layer| scope::active(&layer.weight).is_some())
    }

    /// The gate at `step`, before its activation, when its input layer has been applied to all steps at once.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, steps, d_output]`, hidden: `[batch, d_output]`
    /// - output: `[batch, d_output]`
    #[track_caller]
    pub(crate) fn at(&self, step: usize, inputs: &Tensor<3>, hidden: Tensor<2>) -> Tensor<2> {
        at_step(inputs, step) + self.hidden_transform.forward(hidden)
    }
}

drop_in!(GateController, nn::GateController { input_transform, hidden_transform });

/// Runs a recurrence, whose steps act on later ones. In reverse order they act on earlier ones; weights get no credit from the scores
/// of those.
pub(crate) fn in_time<R>(reverse: bool, run: impl FnOnce() -> R) -> R {
    if reverse { run() } else { scope::acts_later(run) }
}

/// One step of every sequence: `[batch, steps, d]` to `[batch, d]`.
pub(crate) fn at_step(sequences: &Tensor<3>, step: usize) -> Tensor<2> {
    sequences.clone().slice_dim(1, step..step + 1).squeeze_dim(1)
}

/// The states of all steps in one tensor, `[batch, steps, d_hidden]`; with `reverse`, `states` has the last step first.
pub(crate) fn stack_steps(mut states: Vec<Tensor<2>>, reverse: bool) -> Tensor<3> {
    if reverse {
        states.reverse();
    }
    Tensor::stack(states, 1)
}

/// The states of a sequence without steps: `[batch, 0, d_hidden]`.
pub(crate) fn no_steps(state: &Tensor<2>) -> Tensor<3> {
    let [batch, d_hidden] = state.dims();
    Tensor::zeros([batch, 0, d_hidden], (&state.device(), state.dtype()))
}

/// The state that a recurrence starts from: `state`, or zeros.
///
/// # Panics
///
/// Panics if `state` is not `[batch, d_hidden]`, with both shapes.
#[track_caller]
pub(crate) fn initial_state(state: Option<Tensor<2>>, input: &Tensor<3>, d_hidden: usize) -> Tensor<2> {
    let [batch, ..] = input.dims();
    let state = state.unwrap_or_else(|| Tensor::zeros([batch, d_hidden], (&input.device(), input.dtype())));
    assert!(
        state.dims() == [batch, d_hidden],
        "recurrent module: the state {:?} does not fit the input {:?} and a hidden size of {d_hidden}",
        state.dims(),
        input.dims()
    );
    state
}
