//! Cross-entropy of every member or row, as many rows at a time as a vector has lanes.

use super::scratch::with_scratch;
use crate::rng::normal::log;
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;

/// Lanes of the widest instruction set.
const MAX_LANES: usize = 16;

/// Writes `losses : [members]` from `logits : [members · targets, classes]`. Targets must be below `classes`.
pub(crate) fn member_cross_entropy(logits: &[f32], targets: &[usize], classes: usize, losses: &mut [f32]) {
    let member = targets.len() * classes;
    losses.par_iter_mut().zip(logits.par_chunks_exact(member)).with_min_len(8).for_each(|(loss, logits)| {
        let mut sum = 0.0f64;
        let take = |_: usize, loss: f32| sum += f64::from(loss);
        with_scratch(classes * MAX_LANES, |columns| dispatch(Member { logits, targets, classes, columns, take }));
        *loss = (sum / targets.len() as f64) as f32;
    });
}

/// Writes `losses : [members, targets]`; else as [`member_cross_entropy`].
pub(crate) fn row_cross_entropy(logits: &[f32], targets: &[usize], classes: usize, losses: &mut [f32]) {
    let (rows, member) = (targets.len(), targets.len() * classes);
    losses.par_chunks_exact_mut(rows).zip(logits.par_chunks_exact(member)).with_min_len(8).for_each(
        |(losses, logits)| {
            let take = |row: usize, loss: f32| losses[row] = loss;
            with_scratch(classes * MAX_LANES, |columns| dispatch(Member { logits, targets, classes, columns, take }));
        },
    );
}

struct Member<'a, F> {
    logits: &'a [f32],
    targets: &'a [usize],
    classes: usize,
    /// Logits of as many rows as a vector has lanes, class by class.
    columns: &'a mut [f32],
    /// Takes the loss of every row.
    take: F,
}

impl<F: FnMut(usize, f32)> Kernel for Member<'_, F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { logits, targets, classes, columns, mut take } = self;
        assert!(classes > 0 && columns.len() >= classes * S::LANES, "columns of {classes} classes");
        let mut row = 0;
        for (rows, targets) in logits.chunks(classes * S::LANES).zip(targets.chunks(S::LANES)) {
            for (lane, row) in rows.chunks_exact(classes).enumerate() {
                for (class, logit) in row.iter().enumerate() {
                    columns[class * S::LANES + lane] = *logit;
                }
            }
            let mut log_sums = [0.0; MAX_LANES];
            // SAFETY: the processor has the instruction set by this function's contract; `columns` holds one vector for each class,
            // `log_sums` one.
            unsafe { S::store(log_sums.as_mut_ptr(), log_sum_exp::<S>(columns, classes)) };
            for (lane, target) in targets.iter().enumerate() {
                take(row, log_sums[lane] - rows[lane * classes + target]);
                row += 1;
            }
        }
    }
}

/// `log Σ exp` of every lane over `columns : [classes, LANES]`. Lanes that hold no row may hold anything.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `columns` must be of that shape.
#[inline(always)]
unsafe fn log_sum_exp<S: Simd>(columns: &[f32], classes: usize) -> S::F {
    // SAFETY: by this function's contract.
    unsafe {
        let columns = columns.as_ptr();
        let mut largest = S::load(columns);
        for class in 1..classes {
            largest = S::max(largest, S::load(columns.add(class * S::LANES)));
        }
        let mut total = S::splat(0.0);
        for class in 0..classes {
            let shifted = S::sub(S::load(columns.add(class * S::LANES)), largest);
            total = S::add(total, exp::<S>(shifted));
        }
        S::add(log::<S>(total), largest)
    }
}

/// `eˣ` for `x ≤ 0`, relative error below 2e-7; below −87 it stays at e⁻⁸⁷. NaN stays NaN.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    /// `(eʳ − 1 − r)/r²` by its Taylor series: |r| ≤ ½ ln 2 leaves 1e-8.
    const SERIES: [f32; 6] = [0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0];
    /// 1.5·2²³: adding it rounds to an integer, found in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // SAFETY: by this function's contract.
    unsafe {
        let x = S::max(S::splat(-87.0), x);
        let rounded = S::mul_add(x, S::splat(std::f32::consts::LOG2_E), S::splat(ROUND));
        let n = S::sub(rounded, S::splat(ROUND));
        let r = S::mul_add(n, S::splat(-std::f32::consts::LN_2), x);
        let mut sum = S::splat(SERIES[5]);
        for i in (0..5).rev() {
            sum = S::mul_add(sum, r, S::splat(SERIES[i]));
        }
        let value = S::mul_add(S::mul(r, r), sum, S::add(r, S::splat(1.0)));
        let power = S::shl::<23>(S::uadd(S::to_bits(rounded), S::usplat(127)));
        S::mul(value, S::from_bits(power))
    }
}
