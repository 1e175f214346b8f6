//! Names, shapes and kinds of everything in a record: what tells one model from another before any value is loaded.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Bool, Int, Shape, Tensor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One tensor of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parameter {
    path: String,
    shape: Vec<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Float,
    Integer,
    Bool,
}

/// The tensors of a module in traversal order, which is also what addresses their noise.
pub(super) fn of<M: Module>(module: &M) -> Vec<Parameter> {
    let mut collector = Collector::default();
    module.visit(&mut collector);
    collector.parameters
}

/// The first difference between what was saved and what there is, if there is one.
pub(super) fn difference(saved: &[Parameter], found: &[Parameter]) -> Option<String> {
    let differing = saved.iter().zip(found).find(|(saved, found)| saved != found);
    differing.map(|(saved, found)| format!("it has {saved}, the model given has {found}")).or_else(|| {
        let (saved, found) = (saved.len(), found.len());
        (saved != found).then(|| format!("it has {saved} tensors, the model given has {found}"))
    })
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" of shape {:?} ({:?})", self.path, self.shape, self.kind)
    }
}

#[derive(Default)]
struct Collector {
    path: Vec<String>,
    parameters: Vec<Parameter>,
}

impl Collector {
    fn add(&mut self, shape: Shape, kind: Kind) {
        self.parameters.push(Parameter { path: self.path.join("."), shape: shape.to_vec(), kind });
    }
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(param.lazy_shape(), Kind::Float);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param.lazy_shape(), Kind::Integer);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(param.lazy_shape(), Kind::Bool);
    }
}
