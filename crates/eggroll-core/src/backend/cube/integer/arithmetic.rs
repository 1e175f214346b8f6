//! Shared by the kernels: saturation, floor division, the noise of a member, sums over units.

use super::packed_int8::{Form, value};
use crate::arithmetic::integer::INT8_LIMIT;
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
    /// From one pair's noise to the next.
    pub stride: usize,
    /// Bits that a product of noise is shifted down by.
    pub shift: i32,
}

/// Where the noise of a member's pair starts.
#[cube]
pub(crate) fn noise_start(noise: &MaterializedNoise, member: usize) -> usize {
    (noise.skip + member / 2) * noise.stride
}

/// +1 or −1.
#[cube]
pub(crate) fn sign(member: usize) -> i32 {
    1i32 - 2i32 * (member % 2) as i32
}

#[cube]
pub(crate) fn clip(value: i32) -> i32 {
    value.clamp(-INT8_LIMIT, INT8_LIMIT)
}

/// `⌊value / divisor⌋` for a divisor above 0.
#[cube]
pub(crate) fn floor_div(value: i32, divisor: i32) -> i32 {
    let quotient = value / divisor;
    quotient + ((value - quotient * divisor) >> 31i32)
}

/// `value / 2^bits` to nearest, halves away from zero.
#[cube]
pub(crate) fn shift_rounded(value: i32, bits: i32) -> i32 {
    let down = select(bits > 0i32, value >> 31i32, 0i32);
    (value + down + ((1i32 << bits) >> 1i32)) >> bits
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

/// `Σ_k b_k·A[k, column]` for `b` in shared memory, `rank` values from `first` on; the rows of `A` stand `stride` apart, the first at
/// `start`.
#[cube]
pub(crate) fn second_product<I: Int>(
    b: &Shared<[i32]>,
    first: usize,
    held: &[I],
    start: usize,
    rank: usize,
    stride: usize,
    column: usize,
    #[comptime] form: Form,
) -> i32 {
    let mut sum = 0i32;
    let mut k = 0usize.runtime();
    while k < rank {
        sum += b[first + k] * value::<I>(held, start + k * stride + column, form);
        k += 1usize;
    }
    sum
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
