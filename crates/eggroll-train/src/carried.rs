//! What members keep from one generation to the next, as the state of a recurrent model.

use burn::module::{Module, Param, ParamId};
use burn::tensor::kind::Basic;
use burn::tensor::{Int, Tensor};
use eggroll_nn::integer::EggState;
use std::ops::Range;

/// A value that has a row for every member of a population: can be cut into chunks and put together again.
pub trait Carried: Clone + Send + Sync {
    /// The rows of some members.
    fn rows(&self, members: Range<usize>) -> Self;

    /// The rows of all chunks, in order.
    fn join(chunks: Vec<Self>) -> Self;
}

/// Nothing.
impl Carried for () {
    fn rows(&self, _members: Range<usize>) -> Self {}

    fn join(_chunks: Vec<Self>) -> Self {}
}

/// `[members, …]`
impl<const D: usize, K: Basic> Carried for Tensor<D, K>
where
    Self: Clone + Send + Sync,
{
    fn rows(&self, members: Range<usize>) -> Self {
        self.clone().slice_dim(0, members)
    }

    fn join(chunks: Vec<Self>) -> Self {
        Tensor::cat(chunks, 0)
    }
}

/// One after the other, as of the layers of a model.
impl<T: Carried> Carried for Vec<T> {
    fn rows(&self, members: Range<usize>) -> Self {
        self.iter().map(|part| part.rows(members.clone())).collect()
    }

    fn join(chunks: Vec<Self>) -> Self {
        let mut parts: Vec<Vec<T>> = Vec::new();
        for chunk in chunks {
            parts.resize_with(chunk.len(), Vec::new);
            for (part, value) in parts.iter_mut().zip(chunk) {
                part.push(value);
            }
        }
        parts.into_iter().map(T::join).collect()
    }
}

impl Carried for EggState {
    fn rows(&self, members: Range<usize>) -> Self {
        Self { layers: self.layers.rows(members) }
    }

    fn join(chunks: Vec<Self>) -> Self {
        Self { layers: Carried::join(chunks.into_iter().map(|chunk| chunk.layers).collect()) }
    }
}

/// The state of sequences as a module: what a checkpoint saves beside the model
/// ([`Checkpoints::save_carrying`](crate::Checkpoints::save_carrying)).
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::{EggModelConfig, EggState};
/// use eggroll_run::parameter_digest;
/// use eggroll_train::SavedState;
///
/// let model = EggModelConfig::new().with_layers(2).with_width(8).init(&Device::flex());
/// let saved = SavedState::from(model.initial_state(4));
/// assert_eq!(parameter_digest(&saved).len(), 64);
/// assert_eq!(EggState::from(saved).layers.len(), 2);
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
