//! The parameters of a model: which index, shape and role each has.

use crate::model::entry::{ParameterEntry, ParameterKind, TableError};
use crate::model::identity::{Field, ParameterTensor};
use crate::model::paths::{ModulePath, PathVisitor, visit_with_paths};
use crate::model::roles;
use crate::model::scales;
use crate::noise::matrix::MatrixView;
use crate::noise::noiser::{IntegerRule, Noiser, NoiserProperties};
use crate::noise::role::Role;
use crate::rng::key::{NoiseDistribution, NoiseKey};
use crate::work::device::{device_memory, is_on_host};
use burn::module::{Module, Param, ParamId};
use burn::tensor::{DType, Device, Int, Tensor};
use std::collections::HashMap;

/// The parameters of a model in traversal order, integer ones only if the noiser perturbs them. A parameter's position here is its address in the noise
/// ([`NoiseKey`]): the same in every process, which Burn's random [`ParamId`] is not.
///
/// # Identifiers
///
/// Modules are perturbed by [`ParamId`], which Burn keeps on `clone` and on loading. Two fields of one identifier are
///
/// - *tied*, if both are in the model that the table is made of: one parameter with one noise and one step, equal bit for bit. Fields that differ in
///   shape, kind, type, device, values or `no_grad()` are refused.
/// - *a clone*, if the model has one of them only. A clone with `no_grad()` is never perturbed, a frozen teacher for example. Without it a clone
///   cannot be told from the model, and using both in one evaluation is an error. A clone that is used alone is evaluated in place of the
///   model; `tell` refuses it if its values are not the model's. A clone that is made anew for each call may have the
///   place of the model's field, and is then taken for it: give it `no_grad()`.
///
/// Parameters of the model that have `no_grad()` are frozen, like parameters frozen by name. Burn has no such mark for integers. A float parameter
/// made by `Param::initialized` of a plain tensor has it; `Param::from_tensor` makes a trained one.
#[derive(Clone, Debug, Default)]
pub struct ParameterTable {
    entries: Vec<ParameterEntry>,
    positions: HashMap<ParamId, usize>,
    /// Device and type by position.
    places: Vec<(Device, DType)>,
    /// Fields of the model by position: several if they are tied.
    fields: Vec<usize>,
    /// Whether the parameter has `no_grad()`, by position.
    inactive: Vec<bool>,
    distribution: NoiseDistribution,
    /// Pairs of a group whose first pair has no noise.
    baselines: u32,
    /// What noise is relative to, by position, if it is.
    spreads: Option<Vec<f64>>,
    /// Factors of the noise scale by position, if some were given.
    scales: Option<Vec<f64>>,
}

impl ParameterTable {
    /// The parameters of `model` with the roles that `noiser` gives them; parameters that `frozen` [names](Self::with_roles) do not
    /// change.
    ///
    /// # Errors
    ///
    /// [`TableError`] if a frozen name matches nothing, or nothing is left to train and the noiser is not
    /// [meant to](crate::NoiserProperties::no_op) train nothing.
    pub fn new<M: Module>(model: &M, noiser: &dyn Noiser, frozen: &[String]) -> Result<Self, TableError> {
        Self::with_roles(model, noiser, &[], frozen)
    }

    /// As [`new`](Self::new), with `roles` by name in place of the noiser's: the first name that matches a parameter decides. `frozen`
    /// takes precedence over roles.
    ///
    /// A name is one of these:
    /// - the path of a parameter (`encoder.layers.0.weight`);
    /// - the path of a module, for all parameters in it (`encoder.layers`);
    /// - a pattern over paths of parameters (`encoder.*.bias`): `*` stands for any run of characters, dots included, `?` for one.
    ///
    /// # Errors
    ///
    /// [`TableError`] also if a name matches no parameter, or gives one a role that it cannot have.
    pub fn with_roles<M: Module>(
        model: &M,
        noiser: &dyn Noiser,
        roles: &[(String, Role)],
        frozen: &[String],
    ) -> Result<Self, TableError> {
        let NoiserProperties { distribution, baselines, integer, no_op, .. } = noiser.properties();
        let table = Self { distribution, baselines, ..Self::default() };
        let mut collector = TableCollector { noiser, integer, table, first: Vec::new(), refused: None };
        visit_with_paths(model, &mut collector);
        if let Some(error) = collector.refused {
            return Err(error);
        }
        let mut table = collector.table;
        roles::assign(&mut table.entries, roles)?;
        roles::freeze(&mut table.entries, frozen)?;
        let inactive = table.freeze_inactive();
        if no_op {
            table.entries.iter_mut().for_each(|entry| entry.role = Role::Frozen);
        } else if table.entries.iter().all(|entry| entry.role == Role::Frozen) {
            let parameters = table.entries.len();
            return Err(match inactive {
                0 => TableError::NothingToTrain(parameters),
                _ => TableError::NothingActive { parameters, inactive },
            });
        }
        let is_quantized = |(entry, (_, dtype)): &(&ParameterEntry, &(Device, DType))| {
            entry.role != Role::Frozen && matches!(dtype, DType::QFloat(_))
        };
        if let Some((entry, _)) = table.entries.iter().zip(&table.places).find(is_quantized) {
            return Err(TableError::Quantized(entry.path.clone()));
        }
        table.entries.iter().try_for_each(ParameterEntry::validate)?;
        if table.entries.len() > NoiseKey::MAX_PARAMETERS as usize {
            return Err(TableError::TooMany(table.entries.len()));
        }
        Ok(table)
    }

    /// Freezes parameters with `no_grad()`; returns how many would be trained without it.
    fn freeze_inactive(&mut self) -> usize {
        let inactive = self
            .entries
            .iter_mut()
            .zip(&self.inactive)
            .filter(|(entry, inactive)| **inactive && entry.role != Role::Frozen);
        inactive.map(|(entry, _)| entry.role = Role::Frozen).count()
    }

    /// The parameters in traversal order.
    pub fn entries(&self) -> &[ParameterEntry] {
        &self.entries
    }

    /// This table with noise that is relative to these spreads, one for each parameter, or with absolute noise. Roles, addresses and draws
    /// stay as they are.
    ///
    /// # Panics
    ///
    /// Panics if there are not as many spreads as parameters.
    #[track_caller]
    pub fn with_spreads(self, spreads: Option<Vec<f64>>) -> Self {
        if let Some(spreads) = &spreads {
            let (found, expected) = (spreads.len(), self.entries.len());
            assert!(found == expected, "{found} spreads for {expected} parameters");
        }
        Self { spreads, ..self }
    }

    /// What noise is relative to, by position; `None` if it is absolute.
    pub fn spreads(&self) -> Option<&[f64]> {
        self.spreads.as_deref()
    }

    /// This table with factors of the noise scale by name: the first that matches decides, as in [`with_roles`](Self::with_roles), and a
    /// parameter that none matches has 1. No names take all factors away.
    ///
    /// # Errors
    ///
    /// [`TableError`] if a factor is not above 0 or does not fit f32, or a name matches no parameter. Also if a name gives a factor to a
    /// trained integer parameter, whose noise has no σ.
    pub fn with_scales(self, scales: &[(String, f64)]) -> Result<Self, TableError> {
        let scales = match scales {
            [] => None,
            _ => Some(scales::assign(&self.entries, scales)?),
        };
        Ok(Self { scales, ..self })
    }

    /// Validates noise-scale factors; needs no model.
    ///
    /// # Errors
    ///
    /// [`TableError::Scale`] of the first factor that is not above 0 or does not fit f32.
    pub fn check_scales(scales: &[(String, f64)]) -> Result<(), TableError> {
        scales::check(scales)
    }

    /// Factors of the noise scale by position, if [some were given](Self::with_scales).
    pub fn scales(&self) -> Option<&[f64]> {
        self.scales.as_deref()
    }

    /// Whether all parameters have the noise scale of the strategy.
    pub fn has_common_sigma(&self) -> bool {
        self.spreads.is_none() && self.scales.is_none()
    }

    /// Noise scale of the parameter at `position` where that of the strategy is `sigma`: `sigma·spread·scale`, without a spread where noise
    /// is absolute, and without a scale where none was given.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position, unless [all have the same](Self::has_common_sigma).
    pub fn sigma_of(&self, position: usize, sigma: f64) -> f64 {
        let relative = self.spreads.as_ref().map_or(sigma, |spreads| sigma * spreads[position]);
        self.scales.as_ref().map_or(relative, |scales| relative * scales[position])
    }

    /// Distribution of the noise of all parameters.
    pub fn distribution(&self) -> NoiseDistribution {
        self.distribution
    }

    /// Address of the noise of the parameter at `position`.
    pub(crate) fn key(&self, position: usize, seed: u64, generation: u32) -> NoiseKey {
        let key = NoiseKey::new(seed, position as u32, generation).with_distribution(self.distribution);
        key.with_baselines(self.baselines)
    }

    /// Device and type of the parameter at `position`, when the table was made.
    pub(crate) fn place(&self, position: usize) -> (&Device, DType) {
        let (device, dtype) = &self.places[position];
        (device, *dtype)
    }

    /// Bytes of one pair's noise of the parameter at `position`, in the parameter's type.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn noise_bytes(&self, position: usize) -> u64 {
        self.entries[position].noise_elements() as u64 * self.place(position).1.size() as u64
    }

    /// Lower bound on output bytes per row and member, over all matrices that are not frozen, used as they are or transposed.
    pub fn least_output_bytes(&self) -> u64 {
        let bytes = |(entry, (_, dtype)): (&ParameterEntry, &(Device, DType))| match MatrixView::of(&entry.shape) {
            Some(view) if entry.role != Role::Frozen => (view.d_input.min(view.d_output) * dtype.size()) as u64,
            _ => 0,
        };
        self.entries.iter().zip(&self.places).map(bytes).sum()
    }

    /// Whether a parameter of this type is not frozen.
    pub fn trains(&self, dtype: DType) -> bool {
        self.first_trained(dtype).is_some()
    }

    /// The first parameter of this type that is not frozen.
    pub fn first_trained(&self, dtype: DType) -> Option<&ParameterEntry> {
        let mut entries = self.entries.iter().zip(&self.places);
        let found = entries.find(|(entry, (_, found))| entry.role != Role::Frozen && *found == dtype);
        found.map(|(entry, _)| entry)
    }

    /// The parameters of a kind that are not frozen, with their positions.
    pub fn trained(&self, kind: ParameterKind) -> impl Iterator<Item = (usize, &ParameterEntry)> {
        self.entries.iter().enumerate().filter(move |(_, entry)| entry.is_trained_as(kind))
    }

    /// Whether all parameters are in host memory, when the table was made.
    pub fn is_on_host(&self) -> bool {
        self.devices().all(is_on_host)
    }

    /// Bytes of memory of the smallest device of the parameters, if the devices say: CUDA, Vulkan and Metal do, plain WebGPU does not.
    pub fn device_memory(&self) -> Option<u64> {
        self.devices().filter_map(device_memory).min()
    }

    /// The devices of the parameters, when the table was made.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        let first = |i: usize, device: &Device| self.places[..i].iter().all(|(other, _)| other != device);
        let devices = self.places.iter().map(|(device, _)| device).enumerate();
        devices.filter(move |(i, device)| first(*i, device)).map(|(_, device)| device)
    }

    /// Position of a parameter in traversal order.
    pub fn position(&self, id: ParamId) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    /// Whether a parameter is known and not frozen.
    pub fn is_trained(&self, id: ParamId) -> bool {
        self.position(id).is_some_and(|position| self.entries()[position].role != Role::Frozen)
    }

    /// Number of fields of the model that are the parameter at `position`: several if they are [tied](Self#identifiers).
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn fields(&self, position: usize) -> usize {
        self.fields[position]
    }

    /// Whether a parameter has more than one field.
    pub fn has_tied_fields(&self) -> bool {
        self.fields.iter().any(|fields| *fields > 1)
    }

    /// Whether a parameter of the identifier at `position` is in a clone of the model: it has `no_grad()`, which that of the model has not.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn is_clone<T: ParameterTensor>(&self, position: usize, param: &Param<T>) -> bool {
        !self.inactive[position] && T::is_inactive(param)
    }

    /// Whether the parameter at `position` has `no_grad()` in the model too. Fields of the model and of clones are then not distinguished: all are
    /// plain.
    ///
    /// # Panics
    ///
    /// Panics if there is no such position.
    pub fn is_inactive(&self, position: usize) -> bool {
        self.inactive[position]
    }

    /// The first parameter that both tables have.
    pub(crate) fn shared_with(&self, other: &Self) -> Option<&ParameterEntry> {
        self.entries.iter().find(|entry| other.positions.contains_key(&entry.id))
    }
}

struct TableCollector<'a> {
    noiser: &'a dyn Noiser,
    integer: Option<IntegerRule>,
    table: ParameterTable,
    /// The first field of every parameter.
    first: Vec<Field>,
    /// The first tied field that differs.
    refused: Option<TableError>,
}

impl TableCollector<'_> {
    fn add<T: ParameterTensor>(
        &mut self,
        path: &ModulePath,
        param: &Param<T>,
        place: (Device, DType),
        (role, kind): (Role, ParameterKind),
    ) {
        let (shape, inactive) = (param.shape().to_vec(), T::is_inactive(param));
        let Some(position) = self.table.position(param.id) else {
            self.table.places.push(place);
            self.table.fields.push(1);
            self.table.inactive.push(inactive);
            self.table.positions.insert(param.id, self.table.entries.len());
            self.first.push(Field::of(param));
            self.table.entries.push(ParameterEntry { id: param.id, path: path.to_string(), shape, role, kind });
            return;
        };
        self.table.fields[position] += 1;
        let entry = &self.table.entries[position];
        let differs = if kind != entry.kind {
            Some("kind")
        } else if shape != entry.shape {
            Some("shape")
        } else if place != self.table.places[position] {
            Some("type or device")
        } else if inactive != self.table.inactive[position] {
            Some("no_grad()")
        } else if !self.first[position].has_values_of(param) {
            Some("values")
        } else {
            None
        };
        if let Some(differs) = differs {
            let tied = || TableError::Tied { path: entry.path.clone(), other: path.to_string(), differs };
            self.refused.get_or_insert_with(tied);
        }
    }
}

impl PathVisitor for TableCollector<'_> {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        if path.is_state() {
            return;
        }
        let role = (self.noiser.role(&param.dims()), ParameterKind::Float);
        self.add(path, param, (param.device(), param.dtype()), role);
    }

    fn visit_int<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Int>>) {
        if let Some(role) = self.integer.as_ref().map(|rule| rule.role(&param.dims())) {
            self.add(path, param, (param.device(), param.dtype()), (role, ParameterKind::Integer));
        }
    }
}
