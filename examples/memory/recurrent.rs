//! The network: a GRU and a linear layer.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Gru, GruConfig, Linear, LinearConfig};
use eggroll::rl::Policy;

/// Scores of actions from a state that is carried from step to step.
#[derive(Module, Debug)]
pub struct MemoryPolicy {
    gru: Gru,
    output: Linear,
}

impl MemoryPolicy {
    pub fn new(inputs: usize, width: usize, outputs: usize, device: &Device) -> Self {
        Self {
            gru: GruConfig::new(inputs, width, true).init(device),
            output: LinearConfig::new(width, outputs).init(device),
        }
    }
}

impl Policy for MemoryPolicy {
    type State = Tensor<2>;

    fn initial_state(&self, rows: usize, device: &Device) -> Tensor<2> {
        Tensor::zeros([rows, self.gru.d_hidden], device)
    }

    fn forward(&self, observations: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let step = observations.unsqueeze_dim::<3>(1); // [rows, 1, observation_size]
        let state = self.gru.forward(step, Some(state)).squeeze_dim::<2>(1); // [rows, width]
        (self.output.forward(state.clone()), state)
    }
}
