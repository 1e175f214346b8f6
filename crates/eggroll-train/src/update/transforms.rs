//! The program's transforms of a gradient, and what they remember.

use super::kept::KeptTensors;
use crate::error::ConfigError;
use crate::transform::{CustomTransform, ParameterGradient};
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use eggroll_core::{ParameterKind, ParameterTable};
use std::collections::HashMap;

/// The transforms of a strategy with what each remembers.
#[derive(Clone)]
pub(crate) struct Transforms {
    links: Vec<(CustomTransform, Vec<Tensor<1>>)>,
}

impl Transforms {
    pub fn init<M: Module>(given: &[CustomTransform], table: &ParameterTable, model: &M) -> Result<Self, ConfigError> {
        if given.is_empty() {
            return Ok(Self { links: Vec::new() });
        }
        let mut values = Values { table, found: vec![None; table.entries().len()] };
        model.visit(&mut values);
        let values: Vec<Tensor<1>> = values.found.into_iter().flatten().collect();
        let link = |custom: &CustomTransform| custom.given().map(|transform| (custom.clone(), transform.init(&values)));
        Ok(Self { links: given.iter().map(link).collect::<Result<_, _>>()? })
    }

    /// The gradients after all transforms, with what they remember then. An error names the transform that has returned another shape.
    pub fn apply<M: Module>(
        &self,
        table: &ParameterTable,
        model: &M,
        gradients: GradientsParams,
    ) -> Result<(GradientsParams, Self), String> {
        if self.links.is_empty() {
            return Ok((gradients, self.clone()));
        }
        let mut next = self.clone();
        let mut taken = Take { table, gradients, found: table.entries().iter().map(|_| None).collect() };
        model.visit(&mut taken);
        let mut parameters: Vec<ParameterGradient> = taken.found.into_iter().flatten().collect();
        for (custom, state) in &mut next.links {
            let before: Vec<usize> = state.iter().map(|tensor| tensor.dims()[0]).collect();
            custom.given().map_err(|error| error.to_string())?.update(state, &mut parameters);
            let name = custom.name();
            for parameter in &parameters {
                let (found, expected) = (parameter.gradient.dims()[0], parameter.shape.iter().product::<usize>());
                if found != expected {
                    let path = &parameter.path;
                    return Err(format!("\"{name}\" gave {found} values for the {expected} of \"{path}\""));
                }
            }
            let after: Vec<usize> = state.iter().map(|tensor| tensor.dims()[0]).collect();
            if after != before {
                return Err(format!("\"{name}\" remembered tensors of {before:?} values, and of {after:?} now"));
            }
        }
        let by_path: HashMap<String, Tensor<1>> =
            parameters.into_iter().map(|parameter| (parameter.path, parameter.gradient)).collect();
        let mut give = Give { table, by_path, gradients: taken.gradients };
        model.visit(&mut give);
        Ok((give.gradients, next))
    }

    /// `None` if nothing is remembered.
    pub fn to_record(&self) -> Option<KeptTensors> {
        KeptTensors::of(self.links.iter().flat_map(|(_, state)| state))
    }

    /// The same with what a record remembers, or why it is of others.
    pub fn loaded(&self, record: Option<KeptTensors>) -> Result<Self, String> {
        let mut record = record.map_or_else(Vec::new, KeptTensors::into_tensors);
        let lengths = |tensors: &[Tensor<1>]| -> Vec<usize> { tensors.iter().map(|tensor| tensor.dims()[0]).collect() };
        let own: Vec<Tensor<1>> = self.links.iter().flat_map(|(_, state)| state.clone()).collect();
        let (found, expected) = (lengths(&record), lengths(&own));
        if found != expected {
            return Err(format!(
                "the record remembers tensors of {found:?} values, and the transforms of this strategy of {expected:?}"
            ));
        }
        let mut loaded = self.clone();
        for own in loaded.links.iter_mut().flat_map(|(_, state)| state) {
            *own = record.remove(0).to_device(&own.device());
        }
        Ok(loaded)
    }
}

fn flat<const D: usize>(value: Tensor<D>) -> Tensor<1> {
    let elements = value.shape().num_elements();
    value.reshape([elements])
}

/// Position of a float parameter that is trained.
fn trained(table: &ParameterTable, id: ParamId) -> Option<usize> {
    let of_floats = |position: &usize| table.entries()[*position].kind == ParameterKind::Float;
    table.position(id).filter(of_floats).filter(|_| table.is_trained(id))
}

struct Values<'a> {
    table: &'a ParameterTable,
    /// By position.
    found: Vec<Option<Tensor<1>>>,
}

impl ModuleVisitor for Values<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(position) = trained(self.table, param.id) {
            self.found[position].get_or_insert_with(|| flat(param.val()));
        }
    }
}

/// Takes gradients out, flat.
struct Take<'a> {
    table: &'a ParameterTable,
    gradients: GradientsParams,
    /// By position.
    found: Vec<Option<ParameterGradient>>,
}

impl ModuleVisitor for Take<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(position) = trained(self.table, param.id) else { return };
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return };
        let entry = &self.table.entries()[position];
        let (path, shape) = (entry.path.clone(), entry.shape.clone());
        self.found[position] =
            Some(ParameterGradient { path, shape, value: flat(param.val()), gradient: flat(gradient) });
    }
}

/// Puts them back.
struct Give<'a> {
    table: &'a ParameterTable,
    by_path: HashMap<String, Tensor<1>>,
    gradients: GradientsParams,
}

impl ModuleVisitor for Give<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(position) = trained(self.table, param.id) else { return };
        if let Some(gradient) = self.by_path.remove(&self.table.entries()[position].path) {
            self.gradients.register(param.id, gradient.reshape::<D, _>(param.lazy_shape()));
        }
    }
}
