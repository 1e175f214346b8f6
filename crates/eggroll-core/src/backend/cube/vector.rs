//! Noise by element: `θ + s·σ·ε` for every member, and the noise itself.

use super::geometry::COLUMNS;
use super::noise::{PairNoise, SourceKind, Stream, pair_noise};
use super::registers::{none_kept, unit_noise};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Units for the noise of one pair, if each takes a lane of `groups` groups.
pub(crate) fn units_of_pair(elements: usize, groups: usize) -> usize {
    elements.div_ceil(GROUP).div_ceil(groups) * BLOCKS
}

/// Writes `y : [2 · pairs, elements]`.
#[cube(launch)]
pub(crate) fn perturbed_vector_kernel<F: Float>(
    vector: &[F],
    held: &[F],
    y: &mut [F],
    stream: Stream,
    pairs: usize,
    first_pair: u32,
    scale: f32,
    #[comptime] kind: SourceKind,
    #[define(F)] _dtype: ElemType,
) {
    let groups = comptime!(kind.groups_together());
    let elements = stream.elements;
    let units = elements.div_ceil(GROUP).div_ceil(groups) * BLOCKS;
    let pair = ABSOLUTE_POS / units;
    if pair >= pairs {
        terminate!();
    }
    let (lane, first) = (ABSOLUTE_POS % BLOCKS, ABSOLUTE_POS % units / BLOCKS * groups);
    let of = pair_noise(stream, first_pair + pair as u32, kind);
    let mut kept = none_kept(1usize);
    if comptime!(groups == 1) {
        perturb_group::<F>(vector, held, y, &of, &mut kept, pair, first, lane, scale, kind);
    } else {
        let end = elements.div_ceil(GROUP).min(first + groups);
        let mut group = first;
        while group < end {
            perturb_group::<F>(vector, held, y, &of, &mut kept, pair, group, lane, scale, kind);
            group += 1usize;
        }
    }
}

/// This unit's elements of one group, in both members of a pair.
#[cube]
fn perturb_group<F: Float>(
    vector: &[F],
    held: &[F],
    y: &mut [F],
    of: &PairNoise,
    kept: &mut Array<u32>,
    pair: usize,
    group: usize,
    lane: usize,
    scale: f32,
    #[comptime] kind: SourceKind,
) {
    let elements = of.stream.elements;
    let plus = 2 * pair * elements;
    let mut noise = Array::<Vector<f32, Const<1>>>::new(COLUMNS);
    unit_noise::<F, Const<1>>(&mut noise, kept, held, of, group, lane, 1usize, kind);
    #[unroll]
    for c in 0..COLUMNS {
        let element = group * GROUP + lane + comptime!(c * BLOCKS);
        if element < elements {
            let (value, shift) = (f32::cast_from(vector[element]), scale * of.loud * noise[c].extract(0usize));
            y[plus + element] = F::cast_from(value + shift);
            y[plus + elements + element] = F::cast_from(value - shift);
        }
    }
}

/// Writes `noise : [pairs, elements]`.
#[cube(launch)]
pub(crate) fn noise_kernel<F: Float>(
    noise: &mut [F],
    stream: Stream,
    pairs: usize,
    first_pair: u32,
    #[comptime] kind: SourceKind,
    #[define(F)] _dtype: ElemType,
) {
    let groups = comptime!(kind.groups_together());
    let elements = stream.elements;
    let units = elements.div_ceil(GROUP).div_ceil(groups) * BLOCKS;
    let pair = ABSOLUTE_POS / units;
    if pair >= pairs {
        terminate!();
    }
    let (lane, first) = (ABSOLUTE_POS % BLOCKS, ABSOLUTE_POS % units / BLOCKS * groups);
    let of = pair_noise(stream, first_pair + pair as u32, kind);
    let mut kept = none_kept(1usize);
    if comptime!(groups == 1) {
        write_group::<F>(noise, &of, &mut kept, pair, first, lane, kind);
    } else {
        let end = elements.div_ceil(GROUP).min(first + groups);
        let mut group = first;
        while group < end {
            write_group::<F>(noise, &of, &mut kept, pair, group, lane, kind);
            group += 1usize;
        }
    }
}

/// This unit's elements of one group.
#[cube]
fn write_group<F: Float>(
    noise: &mut [F],
    of: &PairNoise,
    kept: &mut Array<u32>,
    pair: usize,
    group: usize,
    lane: usize,
    #[comptime] kind: SourceKind,
) {
    let elements = of.stream.elements;
    let mut drawn = Array::<Vector<f32, Const<1>>>::new(COLUMNS);
    // Drawn noise is held nowhere.
    unit_noise::<F, Const<1>>(&mut drawn, kept, &*noise, of, group, lane, 1usize, kind);
    #[unroll]
    for c in 0..COLUMNS {
        let element = group * GROUP + lane + comptime!(c * BLOCKS);
        write_one::<F>(noise, pair * elements, element, elements, of.loud * drawn[c].extract(0usize));
    }
}

#[cube]
pub(crate) fn write_one<F: Float>(to: &mut [F], start: usize, element: usize, elements: usize, value: f32) {
    if element < elements {
        to[start + element] = F::cast_from(value);
    }
}
