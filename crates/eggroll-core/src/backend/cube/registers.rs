//! Noise in the registers of the unit that draws it. A unit takes some lanes of consecutive groups of a run. The blocks of these lanes
//! are whole vectors of elements; for signs, it uses all words that it has made.

use super::geometry::COLUMNS;
use super::noise::{PairNoise, SourceKind, normals_of_block, sign, sign_words};
use crate::rng::NoiseDistribution;
use crate::rng::normal::{BLOCKS, GROUP};
use crate::rng::rademacher;
use cubecl::prelude::*;

/// Groups of normals' size in one of signs'.
const PARTS: usize = rademacher::GROUP / GROUP;
/// Parts whose signs one word holds.
const WORD_PARTS: usize = rademacher::WORD / GROUP;

/// The groups of a run that a unit goes through, and the first of its lanes: it has as many as a vector has elements.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Walk {
    pub lane: usize,
    pub first: usize,
    pub end: usize,
}

/// This unit's part of the groups that hold elements `begin .. begin + len`.
#[cube]
pub(crate) fn walk(begin: usize, len: usize, #[comptime] units: u32, #[comptime] vector: usize) -> Walk {
    part_of_walk(begin, len, 0usize, 1usize, units, vector)
}

/// The same where `parts` cubes share the groups and this cube is number `part` of them.
#[cube]
pub(crate) fn part_of_walk(
    begin: usize,
    len: usize,
    part: usize,
    parts: usize,
    #[comptime] units: u32,
    #[comptime] vector: usize,
) -> Walk {
    let across = comptime!(BLOCKS / vector);
    let sections = comptime!(units as usize / across);
    let end = (begin + len).div_ceil(GROUP);
    let each = (end - begin / GROUP).div_ceil(sections * parts);
    let first = begin / GROUP + (part * sections + UNIT_POS as usize / across) * each;
    Walk { lane: UNIT_POS as usize % across * vector, first, end: end.min(first + each) }
}

/// What a unit keeps of signs from one group to the next: the words of its lanes' blocks, and the number of their group, from 1 on.
#[cube]
pub(crate) fn none_kept(#[comptime] vector: usize) -> Array<u32> {
    let mut kept = Array::<u32>::new(comptime!(4 * vector + 1));
    kept[comptime!(4 * vector)] = 0u32;
    kept
}

/// Elements `lane`, `lane + 16`, `lane + 32` and `lane + 48` of a group, and those behind each of them that fill a vector; without
/// regard to baselines ([`PairNoise::loud`]). Elements behind a pair's last are any numbers.
#[cube]
pub(crate) fn unit_noise<H: CubePrimitive, N: Size>(
    noise: &mut Array<Vector<f32, N>>,
    kept: &mut Array<u32>,
    held: &[H],
    of: &PairNoise,
    group: usize,
    lane: usize,
    #[comptime] vector: usize,
    #[comptime] kind: SourceKind,
) {
    if comptime!(kind == SourceKind::Drawn(NoiseDistribution::Normal)) {
        normals::<N>(noise, of, group, lane, vector);
    } else if comptime!(kind == SourceKind::Drawn(NoiseDistribution::Rademacher)) {
        signs::<N>(noise, kept, of, group, lane, vector);
    } else {
        #[unroll]
        for c in 0..COLUMNS {
            let element = group * GROUP + lane + comptime!(c * BLOCKS);
            let mut value = Vector::<f32, N>::new(0.0f32);
            if element < of.stream.elements {
                value = Vector::cast_from(held[(of.start + element) / vector]);
            }
            noise[c] = value;
        }
    }
}

#[cube]
fn normals<N: Size>(
    noise: &mut Array<Vector<f32, N>>,
    of: &PairNoise,
    group: usize,
    lane: usize,
    #[comptime] vector: usize,
) {
    let mut first = Vector::<f32, N>::empty();
    let mut second = Vector::<f32, N>::empty();
    let mut third = Vector::<f32, N>::empty();
    let mut fourth = Vector::<f32, N>::empty();
    #[unroll]
    for i in 0..vector {
        let four = normals_of_block(&of.stream, of.pair, (group * BLOCKS + lane + i) as u32);
        first.insert(i, four.0);
        second.insert(i, four.1);
        third.insert(i, four.2);
        fourth.insert(i, four.3);
    }
    noise[0] = first;
    noise[1] = second;
    noise[2] = third;
    noise[3] = fourth;
}

#[cube]
fn signs<N: Size>(
    noise: &mut Array<Vector<f32, N>>,
    kept: &mut Array<u32>,
    of: &PairNoise,
    group: usize,
    lane: usize,
    #[comptime] vector: usize,
) {
    let (sign_group, part) = (group / PARTS, group % PARTS);
    let number = sign_group as u32 + 1u32;
    if kept[comptime!(4 * vector)] != number {
        #[unroll]
        for i in 0..vector {
            let words = sign_words(&of.stream, of.pair, (sign_group * BLOCKS + lane + i) as u32);
            kept[comptime!(4 * i)] = words.0;
            kept[comptime!(4 * i + 1)] = words.1;
            kept[comptime!(4 * i + 2)] = words.2;
            kept[comptime!(4 * i + 3)] = words.3;
        }
        kept[comptime!(4 * vector)] = number;
    }
    let word = part / WORD_PARTS;
    let shift = (part % WORD_PARTS * COLUMNS) as u32;
    let mut first = Vector::<f32, N>::empty();
    let mut second = Vector::<f32, N>::empty();
    let mut third = Vector::<f32, N>::empty();
    let mut fourth = Vector::<f32, N>::empty();
    #[unroll]
    for i in 0..vector {
        let low = select(word == 0usize, kept[comptime!(4 * i)], kept[comptime!(4 * i + 1)]);
        let high = select(word == 2usize, kept[comptime!(4 * i + 2)], kept[comptime!(4 * i + 3)]);
        let bits = select(word < 2usize, low, high) << shift;
        first.insert(i, sign(bits));
        second.insert(i, sign(bits << 1u32));
        third.insert(i, sign(bits << 2u32));
        fourth.insert(i, sign(bits << 3u32));
    }
    noise[0] = first;
    noise[1] = second;
    noise[2] = third;
    noise[3] = fourth;
}
