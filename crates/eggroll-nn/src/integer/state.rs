//! The recurrent state of the language model.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Int, Tensor};
use eggroll_core::MemberState;
use std::ops::Range;

/// The recurrent state of sequences, layer by layer.
#[derive(Clone, Debug)]
pub struct EggState {
    /// `[batch, width]` each.
    pub layers: Vec<Tensor<2, Int>>,
}

impl MemberState for EggState {
    fn rows(&self, members: Range<usize>) -> Self {
        Self { layers: self.layers.rows(members) }
    }

    fn join(chunks: Vec<Self>) -> Self {
        Self { layers: MemberState::join(chunks.into_iter().map(|chunk| chunk.layers).collect()) }
    }
}

/// The state of sequences as a module: what a checkpoint saves next to the model (`Checkpoints::save_with_state` of `eggroll-run`).
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::{EggModelConfig, EggState, SavedState};
///
/// let model = EggModelConfig::new().with_layers(2).with_width(8).init(&Device::flex());
/// let saved = SavedState::from(model.initial_state(4));
/// let state = EggState::from(saved);
/// assert_eq!((state.layers.len(), state.layers[1].dims()), (2, [4, 8]));
/// ```
#[derive(Module, Debug)]
pub struct SavedState {
    layers: Vec<Param<Tensor<2, Int>>>,
}

impl From<EggState> for SavedState {
    fn from(state: EggState) -> Self {
        let parameter = |layer| Param::initialized(ParamId::new(), layer);
        Self { layers: state.layers.into_iter().map(parameter).collect() }
    }
}

impl From<SavedState> for EggState {
    fn from(saved: SavedState) -> Self {
        Self { layers: saved.layers.iter().map(|layer| layer.val()).collect() }
    }
}
