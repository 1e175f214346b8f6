//! The minimal GRU whose gates see the input only (Feng et al., "Were RNNs All We Needed?", arXiv 2410.01201): `h = (1 − f)·h + f·c`.

use super::super::args::{ModelSettings, Settings};
use super::{FloatModel, Mix, SavedTensors, linear, norm};
use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::scope::acts_later;
use eggroll::nn::Linear;

#[derive(Module, Debug)]
pub struct Recurrence {
    forget: Linear,
    candidate: Linear,
    output: Linear,
}

impl Recurrence {
    /// All states `[sequences, steps, width]` and the last one.
    fn states(&self, z: Tensor<3>, state: Tensor<2>, starts: &Tensor<3>) -> (Tensor<3>, Tensor<2>) {
        let [_, steps, _] = z.dims();
        let forget = sigmoid(acts_later(|| self.forget.forward(z.clone())));
        let added = forget.clone() * acts_later(|| self.candidate.forward(z));
        // A document's first byte forgets what was before it.
        let kept = (forget.neg() + 1.0) * starts.clone();
        let mut state = state;
        let mut states = Vec::with_capacity(steps);
        for step in 0..steps {
            let at = |x: &Tensor<3>| x.clone().slice_dim(1, step..step + 1).squeeze_dim::<2>(1);
            state = at(&kept) * state + at(&added);
            states.push(state.clone());
        }
        (Tensor::stack(states, 1), state)
    }
}

impl Mix for Recurrence {
    const NAME: &'static str = "gru";
    /// Of every block: `[sequences, width]`.
    type State = Vec<Tensor<2>>;
    type Saved = SavedTensors;

    fn new(settings: &Settings, _own: &ModelSettings, device: &Device) -> Self {
        let layer = || linear(settings.width, settings.width, device);
        Self { forget: layer(), candidate: layer(), output: layer() }
    }

    fn initial_state(sequences: usize, layers: usize, width: usize, device: &Device) -> Vec<Tensor<2>> {
        vec![Tensor::zeros([sequences, width], device); layers]
    }

    fn forward(model: &FloatModel<Self>, tokens: Tensor<2, Int>, state: Vec<Tensor<2>>) -> (Tensor<3>, Vec<Tensor<2>>) {
        let starts = tokens.clone().not_equal_elem(0).float().unsqueeze_dim::<3>(2); // [sequences, steps, 1]
        let mut x = model.embedding.forward(tokens);
        let mut last = Vec::with_capacity(state.len());
        for (block, state) in model.blocks.iter().zip(state) {
            let (states, state) = block.mix.states(norm(x.clone()), state, &starts);
            x = block.mlp(x + block.mix.output.forward(norm(states)));
            last.push(state);
        }
        (x, last)
    }
}
