//! Held noise as members see it, and the noise itself.

use crate::arithmetic::integer::{Rounding, clip};
use crate::ops::integer::IntegerMembers;
use crate::rng::integer::fill_integers;
use crate::rng::key::{NoiseKey, PairRange};
use rayon::prelude::*;

/// Held noise of the members of a call.
#[derive(Clone, Copy)]
pub(crate) struct NoiseSlice<'a> {
    values: &'a [i8],
    each: usize,
    pub(crate) members: IntegerMembers,
}

impl<'a> NoiseSlice<'a> {
    /// `values : [held pairs, each]`
    pub(crate) fn new(values: &'a [i8], each: usize, members: IntegerMembers) -> Self {
        Self { values, each, members }
    }

    /// The noise of a member's pair.
    #[inline(always)]
    pub(super) fn of(&self, member: usize) -> &'a [i8] {
        let pair = self.members.skip + member / 2;
        &self.values[pair * self.each..(pair + 1) * self.each]
    }
}

/// A vector parameter.
#[derive(Clone, Copy)]
pub(crate) struct VectorSlices<'a> {
    /// `[n]`
    pub(crate) values: &'a [i8],
    pub(crate) noise: Option<NoiseSlice<'a>>,
}

impl VectorSlices<'_> {
    /// Writes the vector as a member sees it, `[n]`.
    #[inline(always)]
    pub(super) fn of(&self, member: usize, rounding: Rounding, out: &mut [i8]) {
        out.copy_from_slice(self.values);
        if let Some(noise) = &self.noise {
            let (n0, n1) = noise.of(member).split_at(self.values.len());
            let (sign, shift) = (sign(member), noise.members.shift);
            let products = out.iter_mut().zip(n0).zip(n1);
            // A loop each: the choice is not made for every value.
            match rounding {
                Rounding::Floor => {
                    for ((out, n0), n1) in products {
                        let by = Rounding::Floor.noise(i32::from(*n0) * i32::from(*n1), sign, shift);
                        *out = clip(i32::from(*out) + by);
                    }
                }
                Rounding::Nearest => {
                    for ((out, n0), n1) in products {
                        let by = Rounding::Nearest.noise(i32::from(*n0) * i32::from(*n1), sign, shift);
                        *out = clip(i32::from(*out) + by);
                    }
                }
            }
        }
    }
}

/// Rows of a member, or all where there is no noise.
pub(super) fn rows_of_member(noises: [Option<NoiseSlice>; 2], rows: usize) -> usize {
    noises.into_iter().flatten().next().map_or(rows, |noise| rows / noise.members.pairs.members())
}

/// +1 for even members, −1 for odd ones.
#[inline(always)]
pub(super) fn sign(member: usize) -> i32 {
    1 - 2 * (member as i32 & 1)
}

/// Writes `noise : [pairs, elements]`.
pub(crate) fn noise(key: NoiseKey, pairs: PairRange, elements: usize, noise: &mut [i8]) {
    let run = |(p, out): (usize, &mut [i8])| fill_integers(key, pairs.first + p as u32, out);
    noise.par_chunks_mut(elements.max(1)).enumerate().for_each(run);
}
