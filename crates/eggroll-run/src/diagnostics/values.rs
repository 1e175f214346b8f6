//! The values of a model's parameters on the host.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};

/// One parameter.
pub(super) struct ParameterValues {
    /// Names of fields from the model down, joined by dots.
    pub path: String,
    pub shape: Vec<usize>,
    pub values: TypedValues,
}

pub(super) enum TypedValues {
    Float(Vec<f64>),
    Integer(Vec<i64>),
}

/// The parameters of a model in traversal order; floats only with `floats`.
pub(super) fn parameter_values<M: Module>(model: &M, floats: bool) -> Vec<ParameterValues> {
    let mut reader = ValueReader { floats, found: Vec::new() };
    visit_with_paths(model, &mut reader);
    reader.found
}

struct ValueReader {
    floats: bool,
    found: Vec<ParameterValues>,
}

impl ValueReader {
    fn add(&mut self, path: &ModulePath, shape: &[usize], values: TypedValues) {
        self.found.push(ParameterValues { path: path.to_string(), shape: shape.to_vec(), values });
    }
}

impl PathVisitor for ValueReader {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        if self.floats {
            let value = param.val();
            self.add(path, &value.dims(), TypedValues::Float(value.into_data().iter::<f64>().collect()));
        }
    }

    fn visit_int<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Int>>) {
        let value = param.val();
        self.add(path, &value.dims(), TypedValues::Integer(value.into_data().iter::<i64>().collect()));
    }
}
