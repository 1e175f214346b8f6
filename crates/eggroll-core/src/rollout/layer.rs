//! Layers of networks that run without tensors: on the host as a [chain](crate::fused::chain), on devices in
//! [one kernel](crate::fused::device_rollout).

use burn::module::Param;
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
use burn::tensor::DType;
use burn::tensor::Tensor;

/// A function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainActivation {
    /// `x`
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `tanh(x)`
    Tanh,
}

/// A linear layer of a chain and its activation.
#[derive(Clone, Copy, Debug)]
pub struct ChainLayer<'a> {
    /// `[d_input, d_output]`
    pub weight: &'a Param<Tensor<2>>,
    /// `[d_output]`
    pub bias: Option<&'a Param<Tensor<1>>>,
    /// The activation of its outputs.
    pub activation: ChainActivation,
}

/// The values of a float32 tensor.
#[cfg(any(feature = "flex", feature = "ndarray", feature = "cube"))]
pub(crate) fn floats<const D: usize>(tensor: Tensor<D>) -> Option<Vec<f32>> {
    (tensor.dtype() == DType::F32).then(|| tensor.into_data().try_to_vec().expect("of type f32"))
}
