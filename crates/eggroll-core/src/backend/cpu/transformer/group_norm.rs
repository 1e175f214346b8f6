//! Normalization of groups to mean 0 and variance 1.

use crate::backend::cpu::product::{for_vectors, load_some};
use crate::simd::{Kernel, Simd, dispatch};

/// `y = (x − mean)/√(var + ε)·w + b` in groups of `size` elements of every row of `x : [rows, n]`, for `w, b : [n]`.
///
/// # Panics
///
/// Panics if `y` is shorter than `x`, or the bias than the weight.
pub(crate) fn group_norm(x: &[f32], size: usize, weight: &[f32], bias: &[f32], epsilon: f32, y: &mut [f32]) {
    dispatch(GroupNorm { x, size, weight, bias: &bias[..weight.len()], epsilon, y: &mut y[..x.len()] });
}

struct GroupNorm<'a> {
    x: &'a [f32],
    size: usize,
    weight: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
    y: &'a mut [f32],
}

impl Kernel for GroupNorm<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (n, size) = (self.weight.len(), self.size);
        for (x, y) in self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n)) {
            let weights = self.weight.chunks_exact(size).zip(self.bias.chunks_exact(size));
            for ((x, y), (weight, bias)) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)).zip(weights) {
                // SAFETY: the processor has the instruction set by this function's contract; all four hold `size` elements.
                unsafe { group::<S>(x, weight, bias, self.epsilon, y.as_mut_ptr()) }
            }
        }
    }
}

/// # Safety
///
/// The processor must have the instruction set `S`; weight, bias and `y` must hold as many elements as `x`.
#[inline(always)]
unsafe fn group<S: Simd>(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32, y: *mut f32) {
    let n = x.len();
    // SAFETY: by this function's contract.
    unsafe {
        let mut sum = S::splat(0.0);
        let mut k = 0;
        while k < n {
            sum = S::add(sum, load_some::<S>(x.as_ptr().add(k), S::LANES.min(n - k)));
            k += S::LANES;
        }
        let mean = S::splat(S::sum(sum) / n as f32);
        for_vectors!(S, n, y, |c, lanes| S::sub(load_some::<S>(x.as_ptr().add(c), lanes), mean));
        let mut squares = S::splat(0.0);
        let mut k = 0;
        while k < n {
            // Lanes behind the last element are 0.
            let difference = load_some::<S>(y.add(k), S::LANES.min(n - k));
            squares = S::mul_add(difference, difference, squares);
            k += S::LANES;
        }
        let scale = S::splat(1.0 / (S::sum(squares) / n as f32 + epsilon).sqrt());
        for_vectors!(S, n, y, |c, lanes| {
            let weight = load_some::<S>(weight.as_ptr().add(c), lanes);
            let bias = load_some::<S>(bias.as_ptr().add(c), lanes);
            S::mul_add(S::mul(load_some::<S>(y.add(c), lanes), scale), weight, bias)
        });
    }
}
