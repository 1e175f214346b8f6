//! Inputs and outputs of a graph.

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use std::vec::IntoIter;

/// Inputs and outputs of a [`PopulationGraph`](super::PopulationGraph): a tensor of any rank and kind, or a tuple of up to four.
pub trait GraphTensors: Clone {
    /// Appends the tensors to `parts`.
    fn collect(self, parts: &mut Vec<DispatchTensor>);

    /// Takes them from `parts` again.
    ///
    /// # Panics
    ///
    /// Panics if `parts` ends too early or has another kind of tensor.
    fn rebuild(parts: &mut IntoIter<DispatchTensor>) -> Self;

    /// The tensors.
    fn parts(self) -> Vec<DispatchTensor> {
        let mut parts = Vec::new();
        self.collect(&mut parts);
        parts
    }
}

impl<const D: usize, K: Basic> GraphTensors for Tensor<D, K> {
    fn collect(self, parts: &mut Vec<DispatchTensor>) {
        parts.push(self.into_dispatch());
    }

    fn rebuild(parts: &mut IntoIter<DispatchTensor>) -> Self {
        Self::from_dispatch(parts.next().expect("as many tensors as were collected"))
    }
}

macro_rules! tuple {
    ($($name:ident),+) => {
        impl<$($name: GraphTensors),+> GraphTensors for ($($name,)+) {
            fn collect(self, parts: &mut Vec<DispatchTensor>) {
                #[expect(non_snake_case, reason = "a variable for each type")]
                let ($($name,)+) = self;
                $($name.collect(parts);)+
            }

            fn rebuild(parts: &mut IntoIter<DispatchTensor>) -> Self {
                ($($name::rebuild(parts),)+)
            }
        }
    };
}

tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
