//! Log-likelihood of every member.

use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::arithmetic::integer::log2_sixteenths;
use crate::arithmetic::integer::transformer::{LARGEST_LOGIT, LOG2, log2_256ths};
use rayon::prelude::*;

/// Logits `[members · rows, classes]`.
pub(crate) enum LogitSlice<'a> {
    Sixteenths(&'a [i8]),
    In256ths(&'a [i32]),
}

/// Writes `sums : [members]`, in the unit of the logits. Targets must be below `classes`.
pub(crate) fn log_likelihood(logits: LogitSlice, targets: &[usize], classes: usize, sums: &mut [i32]) {
    match logits {
        LogitSlice::Sixteenths(logits) => by_member(logits, targets, classes, sums),
        LogitSlice::In256ths(logits) => by_member(logits, targets, classes, sums),
    }
}

fn by_member<L: Logit>(logits: &[L], targets: &[usize], classes: usize, sums: &mut [i32]) {
    let rows = targets.len() / sums.len();
    if rows == 0 {
        return;
    }
    let members = sums.par_iter_mut().zip(logits.par_chunks_exact(rows * classes)).zip(targets.par_chunks_exact(rows));
    members.for_each(|((sum, logits), targets)| dispatch(Member { logits, targets, classes, sum }));
}

struct Member<'a, L> {
    logits: &'a [L],
    targets: &'a [usize],
    classes: usize,
    sum: &'a mut i32,
}

impl<L: Logit> IntegerKernel for Member<'_, L> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        *self.sum = 0;
        // A loop: a closure would not be compiled for the instruction set.
        for (logits, target) in self.logits.chunks_exact(self.classes).zip(self.targets) {
            // SAFETY: the processor has the instruction set by this function's contract.
            *self.sum += unsafe { L::log_likelihood::<S>(logits, *target) };
        }
    }
}

/// A type of logits.
trait Logit: Copy + Sync {
    /// The log-likelihood of the target among a row's classes.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    unsafe fn log_likelihood<S: IntegerSimd>(logits: &[Self], target: usize) -> i32;
}

impl Logit for i8 {
    #[inline(always)]
    unsafe fn log_likelihood<S: IntegerSimd>(logits: &[Self], target: usize) -> i32 {
        // SAFETY: the processor has the instruction set by this function's contract.
        let total = unsafe { S::exp2_sum(logits) };
        i32::from(logits[target]) + 128 - log2_sixteenths(total)
    }
}

impl Logit for i32 {
    #[inline(always)]
    unsafe fn log_likelihood<S: IntegerSimd>(logits: &[Self], target: usize) -> i32 {
        let (mut largest, mut smallest) = (i32::MIN, i32::MAX);
        for logit in logits {
            largest = largest.max(*logit);
            smallest = smallest.min(*logit);
        }
        let range = -LARGEST_LOGIT..=LARGEST_LOGIT;
        let inside = range.contains(&smallest) && range.contains(&largest);
        assert!(inside, "integer log-likelihood: logits from {smallest} to {largest} are not within {range:?}");
        // SAFETY: the processor has the instruction set by this function's contract.
        let total = unsafe { S::exp2_256ths_sum(logits, largest) };
        logits[target] - largest - log2_256ths(total, &LOG2)
    }
}
