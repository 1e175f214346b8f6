//! Shared by the kernels: saturation, floor division, the noise of a member, words of four values, sums over units.

use crate::integer::RAIL;
use cubecl::prelude::*;

/// Held noise of one parameter as a kernel argument.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct MaterializedNoise {
    /// Rows of held noise before the first pair.
    pub skip: usize,
    /// Columns of the factors of a matrix.
    pub rank: usize,
    /// Elements of one pair's noise.
    pub elements: usize,
    /// Bits that a product of noise is shifted down by.
    pub shift: i32,
}

/// Where the noise of a member's pair starts.
#[cube]
pub(crate) fn noise_start(noise: &MaterializedNoise, member: usize) -> usize {
    (noise.skip + member / 2) * noise.elements
}

/// +1 or −1.
#[cube]
pub(crate) fn sign(member: usize) -> i32 {
    1i32 - 2i32 * (member % 2) as i32
}

#[cube]
pub(crate) fn clip(value: i32) -> i32 {
    value.clamp(-RAIL, RAIL)
}

/// `⌊value / divisor⌋` for a divisor above 0.
#[cube]
pub(crate) fn floor_div(value: i32, divisor: i32) -> i32 {
    let quotient = value / divisor;
    quotient + ((value - quotient * divisor) >> 31i32)
}

/// An element of a vector as a member sees it.
#[cube]
pub(crate) fn vector_element<I: Int>(
    vector: &[I],
    held: &[I],
    noise: &MaterializedNoise,
    member: usize,
    element: usize,
    #[comptime] noisy: bool,
) -> i32 {
    let mut value = i32::cast_from(vector[element]);
    if comptime!(noisy) {
        let at = noise_start(noise, member) + element;
        let product = i32::cast_from(held[at]) * i32::cast_from(held[at + noise.elements / 2]);
        value = clip(value + ((product * sign(member)) >> noise.shift));
    }
    value
}

/// `⌊s·Σ_k b_k·A[k, column] / 2^shift⌋` for `b` in shared memory, `rank` values from `first` on.
#[cube]
pub(crate) fn perturbation<I: Int>(
    b: &Shared<[i32]>,
    first: usize,
    held: &[I],
    noise: &MaterializedNoise,
    member: usize,
    d_input: usize,
    d_output: usize,
    column: usize,
) -> i32 {
    let start = noise_start(noise, member) + noise.rank * d_input + column;
    let mut sum = 0i32;
    let mut k = 0usize.runtime();
    while k < noise.rank {
        sum += b[first + k] * i32::cast_from(held[start + k * d_output]);
        k += 1usize;
    }
    (sum * sign(member)) >> noise.shift
}

/// The values at `start + i·step` for `i` from `first` on, one or four packed into a word; 0 from `end` on.
#[cube]
pub(crate) fn word<I: Int>(
    values: &[I],
    start: usize,
    first: usize,
    end: usize,
    step: usize,
    #[comptime] packed: bool,
) -> i32 {
    let mut word = 0i32;
    #[unroll]
    for byte in 0..comptime!(values_of_word(packed)) {
        let i = first + byte;
        if i < end {
            word = put(word, i32::cast_from(values[start + i * step]), byte, packed);
        }
    }
    word
}

/// `word` with a value as byte `byte`; the value itself if words are not packed.
#[cube]
pub(crate) fn put(word: i32, value: i32, #[comptime] byte: usize, #[comptime] packed: bool) -> i32 {
    if comptime!(packed) { word | ((value & 255i32) << comptime!(8 * byte as i32)) } else { value }
}

/// `sum` plus the product of two words: of four values each by a packed dot product, or of one each.
#[cube]
pub(crate) fn multiply(a: i32, b: i32, sum: i32, #[comptime] packed: bool) -> i32 {
    if comptime!(packed) { dp4a(a, b, sum) } else { sum + a * b }
}

/// Values that a word of shared memory holds.
pub(crate) const fn values_of_word(packed: bool) -> usize {
    if packed { 4 } else { 1 }
}

/// Sum over each run of `lanes` units, a power of two; all of them get it.
#[cube]
pub(crate) fn sum_lanes(partial: &mut Shared<[i32]>, value: i32, #[comptime] lanes: usize) -> i32 {
    let unit = UNIT_POS as usize;
    partial[unit] = value;
    sync_cube();
    let mut half = (comptime!(lanes / 2)).runtime();
    while half > 0usize {
        if unit % lanes < half {
            partial[unit] += partial[unit + half];
        }
        sync_cube();
        half /= 2usize;
    }
    let sum = partial[unit / lanes * lanes];
    sync_cube();
    sum
}
