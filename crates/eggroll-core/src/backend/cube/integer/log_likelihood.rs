//! Log-likelihood by member: a cube sums the rows of one member, [`LANES`] units on each row.

use super::arithmetic::sum_lanes;
use super::geometry::LANES;
use crate::arithmetic::integer::{EXP2_MANTISSA, STEPS};
use cubecl::prelude::*;

#[cube(launch)]
pub(crate) fn log_likelihood_kernel<I: Int, T: Int>(
    logits: &[I],
    targets: &[T],
    likelihoods: &mut [i32],
    members: usize,
    rows: usize,
    classes: usize,
    stride: usize,
    #[comptime] units: usize,
    #[define(I)] _dtype: ElemType,
    #[define(T)] _target_dtype: ElemType,
) {
    let member = CUBE_POS;
    if member >= members {
        terminate!();
    }
    let mut mantissa = Shared::<[u32]>::new_slice(comptime!(EXP2_MANTISSA.len()));
    #[unroll]
    for i in 0..comptime!(EXP2_MANTISSA.len()) {
        if UNIT_POS as usize == i {
            mantissa[i] = comptime!(EXP2_MANTISSA[i]).runtime();
        }
    }
    sync_cube();
    let mut partial = Shared::<[i32]>::new_slice(units);
    let lane = UNIT_POS as usize % LANES;
    let mut total = 0i32;
    let mut first = 0usize.runtime();
    while first < rows {
        let local = first + UNIT_POS as usize / LANES;
        // Behind the last row stands a copy of it, which is not counted.
        let row = member * rows + local.min(rows - 1);
        let mut sum = 0i32;
        let mut class = lane;
        while class < classes {
            let q = (i32::cast_from(logits[row * stride + class]) + 128i32) as u32;
            sum += (mantissa[(q & 15u32) as usize] >> (15u32 - (q >> 4u32))) as i32;
            class += LANES;
        }
        let sum = sum_lanes(&mut partial, sum, LANES);
        if lane == 0usize && local < rows {
            let target = u32::cast_from(targets[row]) as usize;
            total += i32::cast_from(logits[row * stride + target]) + 128i32 - log2_sixteenths(sum as u32);
        }
        first += comptime!(units / LANES);
    }
    let total = sum_lanes(&mut partial, total, units);
    if UNIT_POS == 0u32 {
        likelihoods[member] = total;
    }
}

/// The mantissa from which on the fraction is above `k` sixteenths.
const fn fraction_step(k: usize) -> u32 {
    STEPS[k] as u32
}

/// `⌊16·log2(sum/16)⌋` for a sum of at least 16, as each of its terms is.
#[cube]
fn log2_sixteenths(sum: u32) -> i32 {
    let exponent = 31u32 - sum.leading_zeros();
    let mantissa = sum << (31u32 - exponent);
    let mut sixteenths = 16i32 * exponent as i32 - 64i32;
    #[unroll]
    for k in 0..comptime!(STEPS.len()) {
        sixteenths += select(mantissa >= comptime!(fraction_step(k)), 1i32, 0i32);
    }
    sixteenths
}
