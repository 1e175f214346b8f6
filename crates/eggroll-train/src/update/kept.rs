//! Tensors that a strategy keeps next to the model.

use burn::module::{Module, Param, ParamId};
use burn::tensor::Tensor;

/// Tensors that a strategy keeps next to the model, flat, in the form of its record. These are f32 [master
/// weights](crate::EvolutionStrategyConfig::with_master_weights), one for each trained half-precision parameter in the order of the parameter
/// table, or the states of [transforms](crate::GradientTransform), in their order.
#[derive(Module, Debug)]
pub struct KeptTensors {
    values: Vec<Param<Tensor<1>>>,
}

impl KeptTensors {
    /// `None` if there are none.
    pub(super) fn of<'a>(tensors: impl Iterator<Item = &'a Tensor<1>>) -> Option<Self> {
        let param =
            |(index, value): (usize, &Tensor<1>)| Param::initialized(ParamId::from(index as u64), value.clone());
        let values: Vec<_> = tensors.enumerate().map(param).collect();
        (!values.is_empty()).then_some(Self { values })
    }

    pub(super) fn into_tensors(self) -> Vec<Tensor<1>> {
        self.values.into_iter().map(|param| param.val()).collect()
    }
}
