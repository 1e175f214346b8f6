//! Noise on the device: Philox, Gaussian values and signs as in [`crate::rng`], drawn where they are used, or read where they are held.

use crate::ops::TABLE_STEP;
use crate::rng::NoiseDistribution;
use crate::rng::TABLE_ADDRESS;
use crate::rng::key::NoiseKey;
use crate::rng::normal::{BLOCKS, COS, GROUP, LOG, SIN, SQRT_HALF};
use crate::rng::philox::{MULTIPLIERS, ROUNDS, WEYL};
use crate::rng::rademacher::{self, SIGNS};
use cubecl::prelude::*;
use std::f32::consts::LN_2;

/// Where a kernel finds its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceKind {
    Drawn(NoiseDistribution),
    Cached,
    Table,
}

impl SourceKind {
    /// [`groups_together`] of what is drawn; what is held costs nothing to take apart.
    pub(crate) fn groups_together(self) -> usize {
        match self {
            Self::Drawn(distribution) => groups_together(distribution),
            Self::Cached | Self::Table => 1,
        }
    }
}

/// Groups that a unit takes where each unit takes a few: a word of signs serves eight of them.
pub(crate) fn groups_together(distribution: NoiseDistribution) -> usize {
    if distribution == NoiseDistribution::Rademacher { rademacher::WORD / GROUP } else { 1 }
}

/// One parameter's noise in one noise epoch: [`NoiseKey`] as a kernel argument, and where it is held.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Stream {
    seed_low: u32,
    seed_high: u32,
    generation: u32,
    parameter: u32,
    /// Elements of one pair's noise.
    pub elements: usize,
    /// The pair that cached noise begins with.
    first_held: u32,
    /// Places in a table where noise may start.
    runs: u32,
    /// Pairs of a group whose first pair has no noise; 0 without groups.
    group: u32,
}

impl StreamLaunch {
    /// The noise of `elements` elements under `key`; cached from `first_held` on, or in a table of `runs` places.
    pub(crate) fn of(key: NoiseKey, elements: usize, first_held: u32, runs: u32) -> Self {
        let [seed_low, seed_high] = key.words();
        let [_, _, generation, parameter] = key.counter(0, 0);
        Self::new(seed_low, seed_high, generation, parameter, elements, first_held, runs, key.baseline_group())
    }
}

#[cube]
pub(crate) fn philox(counter: (u32, u32, u32, u32), key: (u32, u32)) -> (u32, u32, u32, u32) {
    let (mut c0, mut c1, mut c2, mut c3) = counter;
    let (mut k0, mut k1) = key;
    #[unroll]
    for _ in 0..ROUNDS {
        let high0 = c0.mul_hi(comptime!(MULTIPLIERS[0]));
        let low0 = c0 * comptime!(MULTIPLIERS[0]);
        let high1 = c2.mul_hi(comptime!(MULTIPLIERS[1]));
        let low1 = c2 * comptime!(MULTIPLIERS[1]);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += comptime!(WEYL[0]);
        k1 += comptime!(WEYL[1]);
    }
    (c0, c1, c2, c3)
}

/// Elements `lane`, `lane + 16`, `lane + 32`, `lane + 48` of group `block / 16`, where `lane = block % 16`.
#[cube]
pub(crate) fn drawn_block(
    stream: &Stream,
    pair: u32,
    block: u32,
    #[comptime] distribution: NoiseDistribution,
) -> (f32, f32, f32, f32) {
    let four = if comptime!(distribution == NoiseDistribution::Rademacher) {
        signs_of_block(stream, pair, block)
    } else {
        normals_of_block(stream, pair, block)
    };
    without_baselines(stream, pair, four)
}

/// Zeros for a pair that is a baseline.
#[cube]
fn without_baselines(stream: &Stream, pair: u32, four: (f32, f32, f32, f32)) -> (f32, f32, f32, f32) {
    let loud = baseline_mask(stream, pair);
    (loud * four.0, loud * four.1, loud * four.2, loud * four.3)
}

/// 0 for a pair that is a baseline, else 1; the branch is the same for all units where there are none.
#[cube]
fn baseline_mask(stream: &Stream, pair: u32) -> f32 {
    let mut loud = 1.0f32;
    if stream.group > 0u32 {
        let place = pair % stream.group;
        loud = select(place == 0u32, 0.0f32, 1.0f32);
    }
    loud
}

/// The four elements of [`drawn_block`] are four neighboring bits of one word of a block of signs. A unit that needs more of them
/// keeps the block ([`super::registers`]).
#[cube]
fn signs_of_block(stream: &Stream, pair: u32, block: u32) -> (f32, f32, f32, f32) {
    let (group, lane) = (block / comptime!(BLOCKS as u32), block % comptime!(BLOCKS as u32));
    let part = group % comptime!((rademacher::GROUP / GROUP) as u32);
    let group = group / comptime!((rademacher::GROUP / GROUP) as u32);
    let words = sign_words(stream, pair, group * comptime!(BLOCKS as u32) + lane);
    let parts = comptime!((rademacher::WORD / GROUP) as u32);
    let word = part / parts;
    let low = select(word == 0u32, words.0, words.1);
    let high = select(word == 2u32, words.2, words.3);
    let bits = select(word < 2u32, low, high) << (part % parts * 4u32);
    (sign(bits), sign(bits << 1u32), sign(bits << 2u32), sign(bits << 3u32))
}

/// The four words of one block of signs.
#[cube]
pub(crate) fn sign_words(stream: &Stream, pair: u32, block: u32) -> (u32, u32, u32, u32) {
    let counter = (block, pair, stream.generation, stream.parameter | comptime!(SIGNS));
    philox(counter, (stream.seed_low, stream.seed_high))
}

/// 1 with the highest bit as its sign.
#[cube]
pub(crate) fn sign(bits: u32) -> f32 {
    f32::reinterpret((bits & 0x8000_0000u32) | comptime!(1.0f32.to_bits()))
}

#[cube]
pub(crate) fn normals_of_block(stream: &Stream, pair: u32, block: u32) -> (f32, f32, f32, f32) {
    let key = (stream.seed_low, stream.seed_high);
    let words = philox((block, pair, stream.generation, stream.parameter), key);
    let first = box_muller(words.0, words.1);
    let second = box_muller(words.2, words.3);
    (first.0, first.1, second.0, second.1)
}

#[cube]
fn box_muller(radius_word: u32, angle_word: u32) -> (f32, f32) {
    let radius = minus_two_log(radius_word).sqrt();
    let odd = (i32::reinterpret(angle_word << 2u32) >> 8i32) | 1i32;
    let v = f32::cast_from(odd) * comptime!(1.0 / 16_777_216.0f32);
    let z = v * v;
    let sin = fma(fma(fma(SIN[3], z, SIN[2]), z, SIN[1]), z, SIN[0]) * v;
    let cos = fma(fma(fma(COS[2], z, COS[1]), z, COS[0]), z, 1.0f32);
    let cos = f32::reinterpret(u32::reinterpret(cos) ^ (angle_word & 0x8000_0000u32));
    let swap = (angle_word & 0x4000_0000u32) != 0u32;
    (radius * select(swap, sin, cos), radius * select(swap, cos, sin))
}

/// `−2 ln((⌊w/2⁸⌋ | 1)·2⁻²⁴)`.
#[cube]
fn minus_two_log(word: u32) -> f32 {
    let bits = u32::reinterpret(f32::cast_from((word >> 8u32) | 1u32));
    let exponent = i32::reinterpret(bits - SQRT_HALF) >> 23i32;
    let f = f32::reinterpret(bits - u32::reinterpret(exponent << 23i32)) - 1.0f32;
    let p = fma(fma(fma(LOG[7], f, LOG[6]), f, LOG[5]), f, LOG[4]);
    let p = fma(fma(fma(fma(p, f, LOG[3]), f, LOG[2]), f, LOG[1]), f, LOG[0]);
    let log_mantissa = f * fma(p, f, -2.0f32);
    fma(f32::cast_from(exponent - 24i32), comptime!(-2.0 * LN_2), log_mantissa)
}

/// Where the noise of a pair starts in the memory that holds it.
#[cube]
pub(crate) fn held_start(stream: &Stream, pair: u32, #[comptime] kind: SourceKind) -> usize {
    let mut start = 0usize.runtime();
    if comptime!(kind == SourceKind::Cached) {
        start = (pair - stream.first_held) as usize * stream.elements;
    }
    if comptime!(kind == SourceKind::Table) {
        let counter = (0u32.runtime(), pair, stream.generation, stream.parameter | TABLE_ADDRESS);
        let words = philox(counter, (stream.seed_low, stream.seed_high));
        start = TABLE_STEP * words.0.mul_hi(stream.runs) as usize;
    }
    start
}

/// The four elements of one block, as [`drawn_block`], drawn or from the noise that starts at `start` in `held`.
#[cube]
pub(crate) fn noise_of_block<F: CubePrimitive>(
    held: &[F],
    stream: &Stream,
    pair: u32,
    start: usize,
    block: usize,
    #[comptime] kind: SourceKind,
) -> (f32, f32, f32, f32) {
    if comptime!(kind == SourceKind::Drawn(NoiseDistribution::Rademacher)) {
        drawn_block(stream, pair, block as u32, NoiseDistribution::Rademacher)
    } else if comptime!(kind == SourceKind::Drawn(NoiseDistribution::Normal)) {
        drawn_block(stream, pair, block as u32, NoiseDistribution::Normal)
    } else {
        let element = block / BLOCKS * GROUP + block % BLOCKS;
        let four = (
            held_element::<F>(held, stream, start, element),
            held_element::<F>(held, stream, start, element + BLOCKS),
            held_element::<F>(held, stream, start, element + 2 * BLOCKS),
            held_element::<F>(held, stream, start, element + 3 * BLOCKS),
        );
        without_baselines(stream, pair, four)
    }
}

#[cube]
fn held_element<F: CubePrimitive>(held: &[F], stream: &Stream, start: usize, element: usize) -> f32 {
    let mut value = 0.0f32;
    if element < stream.elements {
        value = f32::cast_from(held[start + element]);
    }
    value
}

/// One pair's noise, and where it starts if it is held.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct PairNoise {
    pub stream: Stream,
    pub pair: u32,
    pub start: usize,
    /// What the noise is to be multiplied with: 0 if the pair is a baseline, else 1.
    pub loud: f32,
}

#[cube]
pub(crate) fn pair_noise(stream: Stream, pair: u32, #[comptime] kind: SourceKind) -> PairNoise {
    let start = held_start(&stream, pair, kind);
    let loud = baseline_mask(&stream, pair);
    PairNoise { stream, pair, start, loud }
}

/// Takes the noise of another pair.
#[cube]
pub(crate) fn go_to(of: &mut PairNoise, pair: u32, #[comptime] kind: SourceKind) {
    of.pair = pair;
    of.start = held_start(&of.stream, pair, kind);
    of.loud = baseline_mask(&of.stream, pair);
}

/// One element of a pair's noise.
#[cube]
pub(crate) fn element_of<F: CubePrimitive>(
    held: &[F],
    of: &PairNoise,
    element: usize,
    #[comptime] kind: SourceKind,
) -> f32 {
    let block = element / GROUP * BLOCKS + element % BLOCKS;
    let four = noise_of_block::<F>(held, &of.stream, of.pair, of.start, block, kind);
    let part = element % GROUP / BLOCKS;
    select(part < 2usize, select(part == 0usize, four.0, four.1), select(part == 2usize, four.2, four.3))
}

/// Brings `groups` groups of a pair's noise, from `first_group` on, to shared memory: a block for each unit. Callers
/// synchronize.
#[cube]
pub(crate) fn bring_chunk<F: CubePrimitive>(
    noise: &mut Shared<[f32]>,
    held: &[F],
    of: &PairNoise,
    first_group: usize,
    groups: usize,
    #[comptime] kind: SourceKind,
) {
    let unit = UNIT_POS as usize;
    let group = unit / BLOCKS;
    if group < groups {
        let block = first_group * BLOCKS + unit;
        let elements = noise_of_block::<F>(held, &of.stream, of.pair, of.start, block, kind);
        // Two groups at a time have the banks of shared memory to themselves: one writes its odd parts first.
        let odd = group % 2 == 1usize;
        let (here, there) = (select(odd, BLOCKS, 0usize), select(odd, 0usize, BLOCKS));
        let at = group * GROUP + unit % BLOCKS;
        noise[at + here] = select(odd, elements.1, elements.0);
        noise[at + there] = select(odd, elements.0, elements.1);
        noise[at + 2 * BLOCKS + here] = select(odd, elements.3, elements.2);
        noise[at + 2 * BLOCKS + there] = select(odd, elements.2, elements.3);
    }
}

/// The four words of one block.
#[cube]
pub(crate) fn words_of_block(stream: &Stream, pair: u32, block: u32) -> (u32, u32, u32, u32) {
    let key = (stream.seed_low, stream.seed_high);
    philox((block, pair, stream.generation, stream.parameter), key)
}
