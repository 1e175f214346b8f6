//! Names, shapes and kinds of all tensors in a record: they tell models apart before any value is loaded.

use burn::module::{Module, Param};
use burn::tensor::{Bool, Int, Shape, Tensor};
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One tensor of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parameter {
    path: String,
    shape: Vec<usize>,
    kind: TypeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TypeKind {
    Float,
    Integer,
    Bool,
}

/// The tensors of a module in traversal order, which also addresses their noise.
pub(super) fn of<M: Module>(module: &M) -> Vec<Parameter> {
    let mut collector = ParameterCollector::default();
    visit_with_paths(module, &mut collector);
    collector.parameters
}

/// The first difference between saved and found tensors, if there is one.
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
struct ParameterCollector {
    parameters: Vec<Parameter>,
}

impl ParameterCollector {
    fn add(&mut self, path: &ModulePath, shape: Shape, kind: TypeKind) {
        self.parameters.push(Parameter { path: path.to_string(), shape: shape.to_vec(), kind });
    }
}

impl PathVisitor for ParameterCollector {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        self.add(path, param.lazy_shape(), TypeKind::Float);
    }

    fn visit_int<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Int>>) {
        self.add(path, param.lazy_shape(), TypeKind::Integer);
    }

    fn visit_bool<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Bool>>) {
        self.add(path, param.lazy_shape(), TypeKind::Bool);
    }
}
