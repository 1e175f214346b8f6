//! The parameters that others decay to.

use super::digest::digest;
use crate::error::ConfigError;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Tensor};
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use eggroll_core::{ParameterKind, ParameterTable};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The trained float parameters of a model.
pub(crate) struct Anchor {
    /// By position in the parameter table, flat; shared with the model until that changes.
    values: Vec<Option<Tensor<1>>>,
    digest: OnceLock<String>,
}

impl Anchor {
    /// The values of `model` for the trained parameters of a table. Parameters are found by path: a model that was loaded anew has other
    /// identifiers of Burn's.
    pub fn of<M: Module>(table: &ParameterTable, model: &M) -> Result<Self, ConfigError> {
        let trained = table.trained(ParameterKind::Float);
        let due = trained.map(|(position, entry)| (entry.path.clone(), (position, entry.shape.clone()))).collect();
        let mut collector = AnchorCollector { due, values: vec![None; table.entries().len()] };
        visit_with_paths(model, &mut collector);
        match collector.due.into_iter().min_by_key(|(_, (position, _))| *position) {
            Some((path, (_, shape))) => Err(ConfigError::Anchor(format!("it has no \"{path}\" of shape {shape:?}"))),
            None => Ok(Self { values: collector.values, digest: OnceLock::new() }),
        }
    }

    /// SHA-256 over position, type and values of all, as hexadecimal digits: reads them once.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| digest(&self.values).unwrap_or_default())
    }

    /// `θ − factor·(θ − θ₀)`
    pub fn pull<M: Module>(&self, table: &ParameterTable, model: M, factor: f64) -> M {
        model.map(&mut Pull { anchor: self, table, factor })
    }
}

struct AnchorCollector {
    /// Position and shape of what is still to be found, by path.
    due: HashMap<String, (usize, Vec<usize>)>,
    values: Vec<Option<Tensor<1>>>,
}

impl PathVisitor for AnchorCollector {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        let path = path.to_string();
        let shape = param.lazy_shape();
        if self.due.get(&path).is_some_and(|(_, expected)| **expected == *shape) {
            let (position, _) = self.due.remove(&path).expect("just found");
            self.values[position] = Some(param.val().reshape([shape.num_elements()]));
        }
    }
}

struct Pull<'a> {
    anchor: &'a Anchor,
    table: &'a ParameterTable,
    factor: f64,
}

impl ModuleMapper for Pull<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.table.position(param.id);
        let Some(anchor) = position.and_then(|position| self.anchor.values[position].clone()) else {
            return param;
        };
        param.map(|value| {
            let dtype = value.dtype();
            // Half precision would lose most of a small difference.
            let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
            let anchor = anchor.to_device(&value.device()).cast(wide).reshape(value.dims());
            let value = value.cast(wide);
            let away = value.clone() - anchor;
            (value - away * self.factor).cast(dtype)
        })
    }
}
