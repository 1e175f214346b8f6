//! Root-mean-square normalization of rows.

use super::product::{for_vectors, load_some};
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Elements that one task takes, about.
const TASK: usize = 1 << 14;

/// `y = x·w / √(mean(x²) + ε)` of every row of `x : [rows, n]`, for `w : [n]`.
///
/// # Panics
///
/// Panics if `y` is shorter than `x`.
pub(crate) fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32, y: &mut [f32]) {
    let y = &mut y[..x.len()];
    dispatch(RmsNorm { x, width: weight.len(), weight: Some(weight), epsilon, y: y.as_mut_ptr(), out: PhantomData });
}

/// Writes `y = x / √(mean(x²) + ε)`, every element, for the rows of `x : [rows, width]`, on all threads.
///
/// # Panics
///
/// Panics if the lengths differ.
pub(crate) fn rms_normalized(x: &[f32], width: usize, epsilon: f32, y: &mut [MaybeUninit<f32>]) {
    assert!(x.len() == y.len() && x.len().is_multiple_of(width.max(1)), "rows of {width} elements");
    let task = (TASK / width.max(1)).max(1) * width.max(1);
    y.par_chunks_mut(task).zip(x.par_chunks(task)).for_each(|(y, x)| {
        dispatch(RmsNorm { x, width, weight: None, epsilon, y: y.as_mut_ptr().cast(), out: PhantomData });
    });
}

/// Writes whole rows at `y`, as many elements as `x` has.
struct RmsNorm<'a> {
    x: &'a [f32],
    width: usize,
    weight: Option<&'a [f32]>,
    epsilon: f32,
    y: *mut f32,
    out: PhantomData<&'a mut [f32]>,
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let n = self.width;
        for (row, x) in self.x.chunks_exact(n).enumerate() {
            // SAFETY: the processor has the instruction set by this function's contract; rows and weight hold `n` elements, and there is a row
            // at `y` for each of `x`.
            unsafe {
                let mut sum = S::splat(0.0);
                let mut k = 0;
                while k < n {
                    let x = load_some::<S>(x.as_ptr().add(k), S::LANES.min(n - k));
                    sum = S::mul_add(x, x, sum);
                    k += S::LANES;
                }
                let scale = S::splat(1.0 / (S::sum(sum) / n as f32 + self.epsilon).sqrt());
                for_vectors!(S, n, self.y.add(row * n), |c, lanes| {
                    let x = S::mul(load_some::<S>(x.as_ptr().add(c), lanes), scale);
                    match self.weight {
                        Some(weight) => S::mul(x, load_some::<S>(weight.as_ptr().add(c), lanes)),
                        None => x,
                    }
                });
            }
        }
    }
}
