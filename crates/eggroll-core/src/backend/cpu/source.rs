//! The noise of a pair: drawn into scratch, or where it is held.

use crate::ops::table_start;
use crate::rng::fill_noise;
use crate::rng::key::NoiseKey;

/// [`NoiseSource`](crate::ops::NoiseSource) on slices.
#[derive(Clone, Copy)]
pub(crate) enum SourceSlice<'a> {
    Drawn,
    /// Noise of pairs from `first` on.
    Cached {
        noise: &'a [f32],
        first: u32,
    },
    Table(&'a [f32]),
}

impl<'a> SourceSlice<'a> {
    /// Whether the noise of some pairs has to be written: it is drawn, or it is that of baselines.
    pub(crate) fn writes(&self, key: NoiseKey) -> bool {
        matches!(self, Self::Drawn) || key.has_baselines()
    }

    /// The whole noise of `pair`, `elements` long, if it is held; that of baselines never is.
    pub(crate) fn held(&self, key: NoiseKey, pair: u32, elements: usize) -> Option<&'a [f32]> {
        match *self {
            _ if key.is_baseline(pair) => None,
            Self::Drawn => None,
            Self::Cached { noise, first } => {
                let start = (pair - first) as usize * elements;
                Some(&noise[start..start + elements])
            }
            Self::Table(table) => {
                let start = table_start(key, pair, elements, table.len());
                Some(&table[start..start + elements])
            }
        }
    }

    /// The whole noise of `pairs` pairs from `first` on, if it is held one pair after the other.
    pub(crate) fn held_together(&self, key: NoiseKey, first: u32, pairs: usize, elements: usize) -> Option<&'a [f32]> {
        match *self {
            Self::Cached { noise, first: held } if !key.has_baselines() => {
                Some(&noise[(first - held) as usize * elements..][..pairs * elements])
            }
            _ => None,
        }
    }

    /// Writes `out.len()` elements of the noise of `pair`, from `start` on.
    pub(crate) fn fill(&self, key: NoiseKey, pair: u32, elements: usize, start: usize, out: &mut [f32]) {
        match self.held(key, pair, elements) {
            Some(noise) => out.copy_from_slice(&noise[start..start + out.len()]),
            None => fill_noise(key, pair, start, out),
        }
    }
}
