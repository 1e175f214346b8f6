//! f32 copies of half-precision parameters, on which an optimizer steps (Micikevicius et al., "Mixed Precision Training", arXiv 1710.03740).

use super::digest::digest;
use super::flat::{flat, trained, trained_values};
use super::kept::KeptTensors;
use crate::optimizer::is_half;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Tensor};
use eggroll_core::{NonFiniteError, ParameterTable};

/// The f32 copies of the trained parameters of half precision.
#[derive(Clone)]
pub(crate) struct Masters {
    /// By position in the parameter table, flat.
    values: Vec<Option<Tensor<1>>>,
}

/// The types of parameters that were widened, by position.
pub(crate) struct Types(Vec<Option<DType>>);

impl Masters {
    /// The copies of `model` as it is.
    pub fn of<M: Module>(table: &ParameterTable, model: &M) -> Self {
        let copy = |value: Tensor<1>| is_half(value.dtype()).then(|| value.cast(DType::F32));
        Self { values: trained_values(table, model).into_iter().map(|value| value.and_then(copy)).collect() }
    }

    /// `model` with the copies in place of the parameters that are their rounded values, and its former types.
    pub fn widen<M: Module>(&self, table: &ParameterTable, model: M) -> (M, Types) {
        let mut widen = Widen { masters: self, table, types: none(table) };
        let model = model.map(&mut widen);
        (model, Types(widen.types))
    }

    /// Takes over the widened parameters of `model`, and rounds them to the types that they had.
    pub fn narrow<M: Module>(&mut self, table: &ParameterTable, model: M, types: &Types) -> M {
        let mut narrow = Narrow { table, types, values: none(table) };
        let model = model.map(&mut narrow);
        self.values = narrow.values;
        model
    }

    /// `None` if there is no parameter of half precision.
    pub fn to_record(&self) -> Option<KeptTensors> {
        KeptTensors::of(self.values.iter().flatten())
    }

    /// The master weights of a record for the same parameters, or why they do not fit.
    pub fn loaded(&self, table: &ParameterTable, record: Option<KeptTensors>) -> Result<Self, String> {
        let record = record.map_or_else(Vec::new, KeptTensors::into_tensors);
        let (found, expected) = (record.len(), self.values.iter().flatten().count());
        if found != expected {
            return Err(format!(
                "the record has master weights of {found} parameters, but this strategy keeps them for {expected}. \
                 Use the types of the model and the master_weights setting that the record was made with"
            ));
        }
        let mut loaded = Self { values: none(table) };
        let own = self.values.iter().enumerate().filter_map(|(position, own)| Some((position, own.as_ref()?)));
        for ((position, own), value) in own.zip(record) {
            let entry = &table.entries()[position];
            let path = &entry.path;
            let (found, expected) = (value.dims()[0], entry.shape.iter().product::<usize>());
            if found != expected {
                return Err(format!("{found} values for \"{path}\" of shape {:?}", entry.shape));
            }
            if value.dtype() != DType::F32 {
                return Err(format!("the master weights of \"{path}\" are {:?}, expected F32", value.dtype()));
            }
            loaded.values[position] = Some(value.to_device(&own.device()));
        }
        loaded.check_finite(table).map_err(|error| error.to_string())?;
        Ok(loaded)
    }

    /// Refuses values that are NaN or infinite. Reads a value for each parameter.
    pub fn check_finite(&self, table: &ParameterTable) -> Result<(), NonFiniteError> {
        for (value, entry) in self.values.iter().zip(table.entries()) {
            let Some(value) = value.as_ref().filter(|value| value.dims() != [0]) else { continue };
            let wrong = value.clone().is_finite().bool_not();
            if wrong.clone().any().into_scalar::<bool>() {
                let count: i64 = wrong.int().sum().into_scalar();
                let path = format!("{} (f32 master)", entry.path);
                return Err(NonFiniteError { path, shape: entry.shape.clone(), count: count as usize });
            }
        }
        Ok(())
    }

    /// SHA-256 of all, as hexadecimal digits; `None` if there are none. Reads them.
    pub fn digest(&self) -> Option<String> {
        digest(&self.values)
    }
}

/// Nothing for each parameter.
fn none<T>(table: &ParameterTable) -> Vec<Option<T>> {
    table.entries().iter().map(|_| None).collect()
}

struct Widen<'a> {
    masters: &'a Masters,
    table: &'a ParameterTable,
    types: Vec<Option<DType>>,
}

impl ModuleMapper for Widen<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(position) = trained(self.table, param.id) else {
            return param;
        };
        param.map(|value| {
            let (dtype, dims, device) = (value.dtype(), value.dims(), value.device());
            if !is_half(dtype) {
                return value;
            }
            self.types[position] = Some(dtype);
            let value = value.cast(DType::F32);
            match &self.masters.values[position] {
                None => value,
                Some(master) => {
                    let master = master.clone().to_device(&device).reshape(dims);
                    // Rounded and widened again: compared in f32, which every device can.
                    let changed = master.clone().cast(dtype).cast(DType::F32).not_equal(value.clone());
                    master.mask_where(changed, value)
                }
            }
        })
    }
}

struct Narrow<'a> {
    table: &'a ParameterTable,
    types: &'a Types,
    values: Vec<Option<Tensor<1>>>,
}

impl ModuleMapper for Narrow<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = trained(self.table, param.id);
        let Some((position, dtype)) = position.and_then(|position| Some((position, self.types.0[position]?))) else {
            return param;
        };
        param.map(|value| {
            // A tied parameter is mapped more than once: the first one has been stepped.
            self.values[position].get_or_insert_with(|| flat(value.clone()));
            value.cast(dtype)
        })
    }
}
