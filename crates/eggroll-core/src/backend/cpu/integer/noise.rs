//! Held noise as members see it, and the noise itself.

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

    /// A vector parameter as a member sees it.
    #[inline(always)]
    pub(super) fn vector(&self, member: usize, vector: &[i8], out: &mut [i8]) {
        let (n0, n1) = self.of(member).split_at(vector.len());
        let sign = sign(member);
        for (((out, v), n0), n1) in out.iter_mut().zip(vector).zip(n0).zip(n1) {
            let shift = (sign * i32::from(*n0) * i32::from(*n1)) >> self.members.shift;
            *out = crate::arithmetic::integer::clip(i32::from(*v) + shift);
        }
    }
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
