//! Parameters as flat tensors.

use burn::module::ParamId;
use burn::tensor::Tensor;
use eggroll_core::ParameterTable;

pub(super) fn flat<const D: usize>(value: Tensor<D>) -> Tensor<1> {
    let elements = value.shape().num_elements();
    value.reshape([elements])
}

/// Position of a parameter that is trained.
pub(super) fn trained(table: &ParameterTable, id: ParamId) -> Option<usize> {
    table.position(id).filter(|_| table.is_trained(id))
}
