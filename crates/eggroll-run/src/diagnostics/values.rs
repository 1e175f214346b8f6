//! The values of a model's parameters on the host.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Int, Tensor};

/// One parameter.
pub(super) struct ParameterValues {
    /// Names of fields from the model down, joined by dots.
    pub path: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

pub(super) enum Values {
    Float(Vec<f64>),
    Integer(Vec<i64>),
}

/// The parameters of a model in traversal order, those of floats only if asked for.
pub(super) fn parameter_values<M: Module>(model: &M, floats: bool) -> Vec<ParameterValues> {
    let mut reader = Reader { path: Vec::new(), floats, found: Vec::new() };
    model.visit(&mut reader);
    reader.found
}

struct Reader {
    path: Vec<String>,
    floats: bool,
    found: Vec<ParameterValues>,
}

impl Reader {
    fn add(&mut self, shape: &[usize], values: Values) {
        self.found.push(ParameterValues { path: self.path.join("."), shape: shape.to_vec(), values });
    }
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.floats {
            let value = param.val();
            self.add(&value.dims(), Values::Float(value.into_data().iter::<f64>().collect()));
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        let value = param.val();
        self.add(&value.dims(), Values::Integer(value.into_data().iter::<i64>().collect()));
    }
}
