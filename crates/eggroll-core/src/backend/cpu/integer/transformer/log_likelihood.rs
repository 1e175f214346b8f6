//! Log-likelihood of every member in 1/256 bit.

use crate::arithmetic::integer::transformer::{LARGEST_LOGIT, LOG2, log2_256ths};
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use rayon::prelude::*;

/// Writes `sums : [members]` from `logits : [members · rows, classes]`. Targets must be below `classes`.
pub(crate) fn log_likelihood(logits: &[i32], targets: &[usize], classes: usize, sums: &mut [i32]) {
    let rows = targets.len() / sums.len();
    if rows == 0 {
        return;
    }
    let members = sums.par_iter_mut().zip(logits.par_chunks_exact(rows * classes)).zip(targets.par_chunks_exact(rows));
    members.for_each(|((sum, logits), targets)| dispatch(Member { logits, targets, classes, sum }));
}

struct Member<'a> {
    logits: &'a [i32],
    targets: &'a [usize],
    classes: usize,
    sum: &'a mut i32,
}

impl IntegerKernel for Member<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let table = &*LOG2;
        *self.sum = 0;
        for (logits, target) in self.logits.chunks_exact(self.classes).zip(self.targets) {
            let (mut largest, mut smallest) = (i32::MIN, i32::MAX);
            for logit in logits {
                largest = largest.max(*logit);
                smallest = smallest.min(*logit);
            }
            let range = -LARGEST_LOGIT..=LARGEST_LOGIT;
            let inside = range.contains(&smallest) && range.contains(&largest);
            assert!(
                inside,
                "integer transformer's log-likelihood: logits from {smallest} to {largest} are not within {range:?}"
            );
            // SAFETY: the processor has the instruction set by this function's contract.
            let total = unsafe { S::exp2_256ths_sum(logits, largest) };
            *self.sum += logits[*target] - largest - log2_256ths(total, table);
        }
    }
}
