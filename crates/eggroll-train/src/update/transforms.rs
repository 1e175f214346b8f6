//! The program's transforms of a gradient, and their state.

use super::flat::{flat, trained, trained_values};
use super::kept::KeptTensors;
use crate::error::ConfigError;
use crate::transform::{CustomTransform, GradientTransform, ParameterGradient};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use eggroll_core::ParameterTable;
use std::sync::Arc;

/// The transforms of a strategy, each with its state.
#[derive(Clone, Default)]
pub(crate) struct Transforms {
    links: Vec<Link>,
}

#[derive(Clone)]
struct Link {
    name: String,
    transform: Arc<dyn GradientTransform>,
    state: Vec<Tensor<1>>,
}

impl Transforms {
    /// For a model with its master weights in place of half precision.
    pub fn init<M: Module>(given: &[CustomTransform], table: &ParameterTable, model: &M) -> Result<Self, ConfigError> {
        let values: Vec<Tensor<1>> = trained_values(table, model).into_iter().flatten().collect();
        let link = |custom: &CustomTransform| {
            let transform = custom.given()?;
            Ok(Link { name: custom.name().to_owned(), state: transform.init(&values), transform })
        };
        Ok(Self { links: given.iter().map(link).collect::<Result<_, ConfigError>>()? })
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The first transform that remembers something.
    pub fn remembering(&self) -> Option<&str> {
        self.links.iter().find(|link| !link.state.is_empty()).map(|link| link.name.as_str())
    }

    /// The gradients after all transforms, with the new states; or the forbidden change of a transform.
    pub fn apply<M: Module>(
        &self,
        table: &ParameterTable,
        model: &M,
        gradients: GradientsParams,
    ) -> Result<(GradientsParams, Self), String> {
        let mut next = self.clone();
        let mut taken = Take { table, gradients, found: table.entries().iter().map(|_| None).collect() };
        model.visit(&mut taken);
        let mut parameters: Vec<ParameterGradient> = taken.found.into_iter().flatten().collect();
        for Link { name, transform, state } in &mut next.links {
            let (before, remembered) = (parameters.clone(), state.clone());
            transform.update(state, &mut parameters);
            for (parameter, before) in parameters.iter().zip(&before) {
                let path = &before.path;
                if parameter.position != before.position {
                    return Err(format!("\"{name}\" put \"{}\" in the place of \"{path}\"", parameter.path));
                }
                same(&before.gradient, &parameter.gradient)
                    .map_err(|difference| format!("\"{name}\" gave \"{path}\" a gradient of {difference}"))?;
            }
            for (at, (remembered, state)) in remembered.iter().zip(state).enumerate() {
                same(remembered, state).map_err(|difference| {
                    format!("\"{name}\" made what it remembers, tensor {at}, one of {difference}")
                })?;
            }
        }
        let mut by_position: Vec<Option<Tensor<1>>> = vec![None; table.entries().len()];
        parameters.into_iter().for_each(|parameter| by_position[parameter.position] = Some(parameter.gradient));
        let mut give = Give { table, by_position, gradients: taken.gradients };
        model.visit(&mut give);
        Ok((give.gradients, next))
    }

    /// `None` if nothing is remembered.
    pub fn to_record(&self) -> Option<KeptTensors> {
        KeptTensors::of(self.links.iter().flat_map(|link| &link.state))
    }

    /// The same with the states of a record, or why they do not fit.
    pub fn loaded(&self, record: Option<KeptTensors>) -> Result<Self, String> {
        let record = record.map_or_else(Vec::new, KeptTensors::into_tensors);
        let mut loaded = self.clone();
        let own: Vec<&mut Tensor<1>> = loaded.links.iter_mut().flat_map(|link| &mut link.state).collect();
        let kinds = |tensors: &mut dyn Iterator<Item = &Tensor<1>>| -> Vec<String> { tensors.map(kind).collect() };
        let (found, expected) = (kinds(&mut record.iter()), kinds(&mut own.iter().map(|own| &**own)));
        if found != expected {
            let [found, expected] = [found, expected].map(|kinds| format!("[{}]", kinds.join(", ")));
            return Err(format!("the record has {found}, and the transforms of this strategy have {expected}"));
        }
        for (own, value) in own.into_iter().zip(record) {
            *own = value.to_device(&own.device());
        }
        Ok(loaded)
    }
}

fn kind(tensor: &Tensor<1>) -> String {
    format!("{} {:?}", tensor.dims()[0], tensor.dtype())
}

/// The difference in length, type or device, as "5 F32 in place of 6 F32".
fn same(expected: &Tensor<1>, found: &Tensor<1>) -> Result<(), String> {
    if kind(expected) != kind(found) {
        return Err(format!("{} values in place of {}", kind(found), kind(expected)));
    }
    if expected.device() != found.device() {
        return Err(format!("values on {:?} in place of {:?}", found.device(), expected.device()));
    }
    Ok(())
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
        let (value, gradient) = (flat(param.val()), flat(gradient));
        self.found[position] = Some(ParameterGradient { position, path, shape, value, gradient });
    }
}

/// Puts them back.
struct Give<'a> {
    table: &'a ParameterTable,
    by_position: Vec<Option<Tensor<1>>>,
    gradients: GradientsParams,
}

impl ModuleVisitor for Give<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(position) = trained(self.table, param.id) else { return };
        if let Some(gradient) = self.by_position[position].take() {
            self.gradients.register(param.id, gradient.reshape::<D, _>(param.lazy_shape()));
        }
    }
}
