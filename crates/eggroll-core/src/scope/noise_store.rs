//! Noise that is held instead of drawn on the fly: for one noise epoch, or as one big table.

use crate::model::entry::{MAX_NOISE_ELEMENTS, ParameterKind};
use crate::model::table::ParameterTable;
use crate::noise::role::Role;
use crate::ops::integer::table_noise;
use crate::ops::{self, NoiseSource, noise};
use crate::rng::integer;
use crate::rng::key::{NoiseKey, PairRange};
use burn::tensor::{DType, Device, Int, Tensor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where a strategy's noise comes from.
///
/// | source | memory | results |
/// |---|---|---|
/// | on the fly | none | the stream of [`crate::rng`] |
/// | cached | 4 bytes for each pair and noise element | the same, bit for bit |
/// | table | 4 bytes for each element of the table | another stream: [`NoiseSource::Table`] |
///
/// The noise of integer parameters is always held for its noise epoch, one byte for each element. It is drawn
/// from its stream ([`crate::rng::integer`]), or taken from a table of bytes.
///
/// # Example
///
/// ```
/// use eggroll_core::NoiseSourceConfig;
///
/// let config = NoiseSourceConfig::Table { len: 1 << 20 };
/// assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"table":{"len":1048576}}"#);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseSourceConfig {
    /// Drawn anew in every operation; needs no memory.
    #[default]
    OnTheFly,
    /// Drawn once for every noise epoch and kept: for many forwards under the same noise, for example in an episode.
    Cached,
    /// Runs of one table of noise, made once.
    Table {
        /// Elements of the table.
        len: usize,
    },
}

/// A noise source that does not fit a model.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseSourceError {
    /// The table is shorter than one pair's noise of a parameter.
    #[error(
        "a noise table of {len} elements is shorter than the {elements} elements of one pair's noise of \"{path}\""
    )]
    TableTooShort {
        /// Elements of the table.
        len: usize,
        /// Elements of the parameter's noise.
        elements: usize,
        /// The parameter.
        path: String,
    },
    /// The table is longer than the stream that fills it.
    #[error("a noise table of {len} elements is longer than the {MAX_NOISE_ELEMENTS} of a noise stream")]
    TableTooLong {
        /// Elements of the table.
        len: usize,
    },
}

crate::debug_is_message!(NoiseSourceError);

/// The noise that a strategy holds.
#[derive(Clone, Debug, Default)]
pub struct MaterializedNoise {
    /// By position in the parameter table; empty if all noise is drawn on the fly.
    sources: Vec<NoiseSource>,
    /// `[pairs, elements]` of integer parameters, by position; always held, since it is small.
    integers: Vec<Option<Tensor<2, Int>>>,
    /// The table that the noise of integer parameters is taken from, if any.
    integer_table: Option<Arc<Vec<i8>>>,
    bytes: u64,
    generation: u32,
    /// The pair of the first row.
    first_pair: u32,
}

impl NoiseSourceConfig {
    /// Checks that this source fits every parameter's noise.
    ///
    /// # Errors
    ///
    /// [`NoiseSourceError`] with the parameter that does not fit, or the length.
    pub fn validate(&self, table: &ParameterTable) -> Result<(), NoiseSourceError> {
        let Self::Table { len } = *self else {
            return Ok(());
        };
        if len as u64 > MAX_NOISE_ELEMENTS {
            return Err(NoiseSourceError::TableTooLong { len });
        }
        let noise = table.entries().iter().map(|entry| (entry, entry.noise_elements()));
        match noise.max_by_key(|(_, elements)| *elements) {
            Some((entry, elements)) if elements > len => {
                Err(NoiseSourceError::TableTooShort { len, elements, path: entry.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Bytes that [`hold`](Self::hold) will hold for `pairs` pairs; `u64::MAX` for more.
    pub fn materialized_bytes(&self, table: &ParameterTable, pairs: u32) -> u64 {
        let mut each = 0u64; // bytes of a pair's noise
        let mut tables: Vec<(Option<&Device>, u64)> = Vec::new(); // device and bytes of an element
        for (position, entry) in table.entries().iter().enumerate() {
            let (noise, (device, dtype)) = (table.noise_bytes(position), table.place(position));
            let (held, in_table) = match entry.kind {
                // All integers share one table of bytes on the host.
                ParameterKind::Integer => (entry.role != Role::Frozen, (None, 1)),
                ParameterKind::Float => (*self == Self::Cached, (Some(device), dtype.size() as u64)),
            };
            each = each.saturating_add(if held { noise } else { 0 });
            if !tables.contains(&in_table) {
                tables.push(in_table);
            }
        }
        let tables = match *self {
            Self::Table { len } => {
                tables.iter().fold(0u64, |sum, (_, size)| sum.saturating_add((len as u64).saturating_mul(*size)))
            }
            _ => 0,
        };
        each.saturating_mul(u64::from(pairs)).saturating_add(tables)
    }

    /// The noise of `pairs` in one noise epoch; a table is taken over from what was held `before`.
    pub fn hold(
        &self,
        table: &ParameterTable,
        seed: u64,
        generation: u32,
        pairs: PairRange,
        before: Option<&MaterializedNoise>,
    ) -> MaterializedNoise {
        let mut held = match (*self, before) {
            (Self::OnTheFly, _) => MaterializedNoise::default(),
            (Self::Table { .. }, Some(before)) => before.clone(),
            (Self::Table { len }, None) => MaterializedNoise::table(table, seed, len),
            (Self::Cached, _) => MaterializedNoise::cached(table, seed, generation, pairs),
        };
        (held.generation, held.first_pair) = (generation, pairs.first);
        held.hold_integers(table, seed, pairs);
        held
    }
}

impl MaterializedNoise {
    fn cached(table: &ParameterTable, seed: u64, generation: u32, pairs: PairRange) -> Self {
        let mut held = Self::default();
        for (position, entry) in table.entries().iter().enumerate() {
            let elements = entry.noise_elements();
            held.sources.push(if entry.role == Role::Frozen || entry.kind == ParameterKind::Integer {
                NoiseSource::Drawn
            } else {
                let (device, dtype) = table.place(position);
                let key = table.key(position, seed, generation);
                held.bytes += u64::from(pairs.count) * table.noise_bytes(position);
                let noise = noise(key, pairs, elements, device, dtype);
                NoiseSource::Cached { noise, first_pair: pairs.first }
            });
        }
        held
    }

    fn table(table: &ParameterTable, seed: u64, len: usize) -> Self {
        let integer = table.entries().iter().any(|entry| entry.kind == ParameterKind::Integer);
        let integer_table = integer.then(|| Arc::new(integer::table(seed, len)));
        let mut held = Self {
            bytes: integer_table.as_ref().map_or(0, |table| table.len() as u64),
            integer_table,
            ..Self::default()
        };
        let key = NoiseKey::table(seed).with_distribution(table.distribution());
        let mut tables: Vec<(Device, DType, Tensor<1>)> = Vec::new();
        for (position, entry) in table.entries().iter().enumerate() {
            if entry.kind == ParameterKind::Integer {
                held.sources.push(NoiseSource::Drawn);
                continue;
            }
            let (device, dtype) = table.place(position);
            let known = tables.iter().find(|(on, of, _)| on == device && *of == dtype);
            let noise = known.map(|(_, _, noise)| noise.clone()).unwrap_or_else(|| {
                held.bytes += (len * dtype.size()) as u64;
                let noise = noise(key, PairRange::new(0, 1), len, device, dtype).squeeze_dim(0);
                tables.push((device.clone(), dtype, noise.clone()));
                noise
            });
            held.sources.push(NoiseSource::Table(noise));
        }
        held
    }

    /// Makes the noise of all integer parameters.
    fn hold_integers(&mut self, table: &ParameterTable, seed: u64, pairs: PairRange) {
        self.integers.clear();
        for (position, entry) in table.entries().iter().enumerate() {
            let held = entry.is_trained_as(ParameterKind::Integer);
            self.integers.push(held.then(|| {
                let (device, _) = table.place(position);
                let key = table.key(position, seed, self.generation);
                match &self.integer_table {
                    Some(table) => table_noise(table, key, pairs, entry.noise_elements(), device),
                    None => ops::integer::noise(key, pairs, entry.noise_elements(), device),
                }
            }));
        }
    }

    /// Noise of float parameters from the caller, by position in the parameter table, for example recorded by another program.
    #[doc(hidden)]
    pub fn of_floats(generation: u32, sources: Vec<NoiseSource>) -> Self {
        Self { sources, generation, ..Self::default() }
    }

    /// Noise of integer parameters from the caller, `[pairs, elements]` by position in the parameter table, for example
    /// recorded by another program. A parameter without noise is plain.
    #[doc(hidden)]
    pub fn of_integers(generation: u32, noise: Vec<Option<Tensor<2, Int>>>) -> Self {
        Self { integers: noise, generation, ..Self::default() }
    }

    /// The noise of all held pairs of the integer parameter at `position`, `[pairs, elements]`, if it has any.
    pub fn integer(&self, position: usize) -> Option<&Tensor<2, Int>> {
        self.integers.get(position)?.as_ref()
    }

    /// Where the noise of the parameter at `position` comes from.
    pub fn source(&self, position: usize) -> NoiseSource {
        self.sources.get(position).cloned().unwrap_or_default()
    }

    /// The first pair whose noise is held.
    pub(crate) fn first_pair(&self) -> u32 {
        self.first_pair
    }

    /// The noise epoch that it is held for.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Bytes of noise that are held.
    pub fn bytes(&self) -> u64 {
        let bytes = |noise: &Tensor<2, Int>| (noise.shape().num_elements() * noise.dtype().size()) as u64;
        self.bytes + self.integers.iter().flatten().map(bytes).sum::<u64>()
    }
}
