//! The minimal GRU whose gates see the input only (Feng et al., "Were RNNs All We Needed?", arXiv 2410.01201): `h = (1 − f)·h + f·c`.

use super::super::args::{CharLmSettings, ModelSettings};
use super::{FloatModel, Mix, SavedTensors, linear, norm};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::ops::gated_recurrence;
use eggroll::core::scope::acts_later;
use eggroll::nn::Linear;
use eggroll::prelude::MemberChunk;

#[derive(Module, Debug)]
pub struct Recurrence {
    forget: Linear,
    candidate: Linear,
    output: Linear,
}

impl Recurrence {
    /// All states `[sequences, steps, width]`. A document's first byte forgets what was before it: `kept` is 0 there, else 1.
    fn states(&self, z: Tensor<3>, kept: Tensor<2>, state: Tensor<2>) -> Tensor<3> {
        let forget = acts_later(|| self.forget.forward(z.clone()));
        let candidate = acts_later(|| self.candidate.forward(z));
        gated_recurrence(forget, candidate, kept, state)
    }
}

impl Mix for Recurrence {
    const NAME: &'static str = "gru";
    /// Of every block: `[sequences, width]`.
    type State = Vec<Tensor<2>>;
    type Saved = SavedTensors;
    const CONTINUES: bool = true;

    fn new(settings: &CharLmSettings, _own: &ModelSettings, device: &Device) -> Self {
        let layer = || linear(settings.width, settings.width, device);
        Self { forget: layer(), candidate: layer(), output: layer() }
    }

    fn initial_state(sequences: usize, layers: usize, width: usize, device: &Device) -> Vec<Tensor<2>> {
        vec![Tensor::zeros([sequences, width], device); layers]
    }

    fn repeated(state: &Vec<Tensor<2>>, members: &MemberChunk) -> Vec<Tensor<2>> {
        state.iter().map(|state| members.repeat(state.clone())).collect()
    }

    fn forward(model: &FloatModel<Self>, tokens: Tensor<2, Int>, state: Vec<Tensor<2>>) -> (Tensor<3>, Vec<Tensor<2>>) {
        let kept = tokens.clone().not_equal_elem(0).float(); // [sequences, steps]
        let mut x = acts_later(|| model.embedding.forward(tokens));
        let mut last = Vec::with_capacity(state.len());
        for (block, state) in model.blocks.iter().zip(state) {
            let states = block.mix.states(norm(x.clone()), kept.clone(), state);
            let steps = states.dims()[1];
            last.push(states.clone().slice_dim(1, steps - 1..steps).squeeze_dim(1));
            x = block.mlp(x + block.mix.output.forward(norm(states)));
        }
        (x, last)
    }
}
