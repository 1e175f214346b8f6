//! Visitors of modules that know the path of each tensor.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Bool, Int, Tensor};
use std::fmt;

/// The path of a tensor in a module: names of the fields from the module down. Printed, they are joined by
/// dots, `encoder.layers.0.weight`.
#[derive(Clone, Debug, Default)]
pub struct ModulePath {
    names: Vec<String>,
    /// Kinds of the containers that have these fields.
    containers: Vec<String>,
}

impl ModulePath {
    /// Whether a tensor here is a state, which visitors cannot tell from a parameter: running statistics of a batch norm, Burn's
    /// or eggroll's.
    pub fn is_state(&self) -> bool {
        let [container, field] = [&self.containers, &self.names].map(|stack| stack.last().map(String::as_str));
        container == Some("Struct:BatchNorm") && matches!(field, Some("running_mean" | "running_var"))
    }
}

impl fmt::Display for ModulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("."))
    }
}

/// A [`ModuleVisitor`] that gets the path of every tensor.
pub trait PathVisitor {
    /// Visits a float tensor.
    fn visit_float<const D: usize>(&mut self, _path: &ModulePath, _param: &Param<Tensor<D>>) {}

    /// Visits an integer tensor.
    fn visit_int<const D: usize>(&mut self, _path: &ModulePath, _param: &Param<Tensor<D, Int>>) {}

    /// Visits a boolean tensor.
    fn visit_bool<const D: usize>(&mut self, _path: &ModulePath, _param: &Param<Tensor<D, Bool>>) {}
}

/// Shows all tensors of a module to `visitor`, in traversal order; a tied one once for each field.
///
/// # Example
///
/// ```
/// use burn::module::Param;
/// use burn::nn::LinearConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
///
/// struct Names(Vec<String>);
///
/// impl PathVisitor for Names {
///     fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
///         self.0.push(format!("{path} {:?}", param.dims()));
///     }
/// }
///
/// let mut names = Names(Vec::new());
/// visit_with_paths(&vec![LinearConfig::new(2, 3).init(&Device::flex())], &mut names);
/// assert_eq!(names.0, ["0.weight [2, 3]", "0.bias [3]"]);
/// ```
pub fn visit_with_paths<M: Module>(module: &M, visitor: &mut impl PathVisitor) {
    module.visit(&mut WithPath { path: ModulePath::default(), visitor });
}

struct WithPath<'a, V> {
    path: ModulePath,
    visitor: &'a mut V,
}

impl<V: PathVisitor> ModuleVisitor for WithPath<'_, V> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.names.push(name.to_owned());
        self.path.containers.push(container_type.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.names.pop();
        self.path.containers.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.visitor.visit_float(&self.path, param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.visitor.visit_int(&self.path, param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.visitor.visit_bool(&self.path, param);
    }
}
