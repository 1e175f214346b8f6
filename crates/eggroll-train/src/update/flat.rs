//! Parameters as flat tensors.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
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

/// The float parameters that are trained, by position in the table; a tied one once. Tensors are shared, not copied.
pub(super) fn trained_values<M: Module>(table: &ParameterTable, model: &M) -> Vec<Option<Tensor<1>>> {
    let mut values = FlatValues { table, found: vec![None; table.entries().len()] };
    model.visit(&mut values);
    values.found
}

struct FlatValues<'a> {
    table: &'a ParameterTable,
    found: Vec<Option<Tensor<1>>>,
}

impl ModuleVisitor for FlatValues<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(position) = trained(self.table, param.id) {
            self.found[position].get_or_insert_with(|| flat(param.val()));
        }
    }
}
