//! Log-likelihood of every member in sixteenths of a bit.

use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::arithmetic::integer::log2_sixteenths;
use rayon::prelude::*;

/// Writes `sums : [members]` from `logits : [members · rows, classes]`. Targets must be below `classes`.
pub(crate) fn log_likelihood(logits: &[i8], targets: &[usize], classes: usize, sums: &mut [i32]) {
    let rows = targets.len() / sums.len();
    if rows == 0 {
        return;
    }
    let members = sums.par_iter_mut().zip(logits.par_chunks_exact(rows * classes)).zip(targets.par_chunks_exact(rows));
    members.for_each(|((sum, logits), targets)| dispatch(Member { logits, targets, classes, sum }));
}

struct Member<'a> {
    logits: &'a [i8],
    targets: &'a [usize],
    classes: usize,
    sum: &'a mut i32,
}

impl IntegerKernel for Member<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let rows = self.logits.chunks_exact(self.classes).zip(self.targets);
        *self.sum = 0;
        // A loop: a closure would not be compiled for the instruction set.
        for (logits, target) in rows {
            // SAFETY: the processor has the instruction set by this function's contract.
            let total = unsafe { S::exp2_sum(logits) };
            *self.sum += i32::from(logits[*target]) + 128 - log2_sixteenths(total);
        }
    }
}
