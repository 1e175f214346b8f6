//! The logistic function and what is made of it, element by element.

use super::exp::{exp, one_and_exp_of_minus};
use crate::ops::rows::Activation;
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Elements that one task takes.
const TASK: usize = 1 << 14;

/// Writes `y = function(x)`, every element, on all threads.
///
/// # Panics
///
/// Panics if the lengths differ.
pub(crate) fn activation(x: &[f32], function: Activation, y: &mut [MaybeUninit<f32>]) {
    assert!(x.len() == y.len(), "activations of {} elements for {}", x.len(), y.len());
    y.par_chunks_mut(TASK).zip(x.par_chunks(TASK)).for_each(|(y, x)| match function {
        Activation::Gelu => dispatch(Map::<Gelu>::new(x, y)),
        Activation::Sigmoid => dispatch(Map::<Sigmoid>::new(x, y)),
        Activation::Silu => dispatch(Map::<Silu>::new(x, y)),
        Activation::Tanh => dispatch(Map::<Tanh>::new(x, y)),
    });
}

/// `x ← 1/(1 + exp(−x))`
pub(crate) fn sigmoid(x: &mut [f32]) {
    dispatch(Map::<Sigmoid>::in_place(x));
}

/// `x ← tanh(x)`
pub(crate) fn tanh(x: &mut [f32]) {
    dispatch(Map::<Tanh>::in_place(x));
}

/// `x ← exp(−e^(−1/2)/(1 + exp(−x)))`
pub(crate) fn wkv7_decay(x: &mut [f32]) {
    dispatch(Map::<Decay>::in_place(x));
}

/// A function of single elements.
pub(super) trait Element {
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn of<S: Simd>(x: S::F) -> S::F;
}

/// `len` elements that are read at `x` and written at `y`: apart, or the same.
struct Map<'a, E> {
    x: *const f32,
    y: *mut f32,
    len: usize,
    element: PhantomData<(&'a mut [f32], E)>,
}

impl<'a, E> Map<'a, E> {
    fn in_place(x: &'a mut [f32]) -> Self {
        let (y, len) = (x.as_mut_ptr(), x.len());
        Self { x: y, y, len, element: PhantomData }
    }

    fn new(x: &'a [f32], y: &'a mut [MaybeUninit<f32>]) -> Self {
        Self { x: x.as_ptr(), y: y.as_mut_ptr().cast(), len: x.len().min(y.len()), element: PhantomData }
    }
}

impl<E: Element> Kernel for Map<'_, E> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, y, len, .. } = self;
        // SAFETY: the processor has the instruction set by this function's contract; there are `len` elements at `x` and at `y`, whole vectors
        // end inside, the last part is loaded and stored by count.
        unsafe {
            // A loop, not a closure: a closure of this size is not inlined, and its vectors go through memory.
            let mut c = 0;
            while c + S::LANES <= len {
                S::store(y.add(c), E::of::<S>(S::load(x.add(c))));
                c += S::LANES;
            }
            if c < len {
                S::store_first(y.add(c), E::of::<S>(S::load_first(x.add(c), len - c)), len - c);
            }
        }
    }
}

struct Gelu;

impl Element for Gelu {
    /// `max(x, 0) − |x|·Φ(−|x|)`, `Φ(−z) = ½·t·P(t)·exp(−z²/2)` with `t = 1/(1 + p·z/√2)`: 7.1.26 of Abramowitz and Stegun.
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        /// `p/√2`
        const P: f32 = 0.231_641_88;
        /// Half of the coefficients, from the highest order on.
        const COEFFICIENTS: [f32; 5] = [0.530_702_7, -0.726_576, 0.710_706_9, -0.142_248_37, 0.127_414_8];
        /// Beyond, nothing of the normal distribution is left; an infinite `|x|` would make NaN of it.
        const FAR: f32 = 20.0;
        // SAFETY: by this function's contract.
        unsafe {
            let zero = S::splat(0.0);
            let minus = S::max(S::splat(-FAR), S::sub(zero, S::max(S::sub(zero, x), x))); // −|x|
            let t = S::div(S::splat(1.0), S::mul_add(S::splat(-P), minus, S::splat(1.0)));
            let mut sum = S::splat(COEFFICIENTS[0]);
            for coefficient in &COEFFICIENTS[1..] {
                sum = S::mul_add(sum, t, S::splat(*coefficient));
            }
            let square = S::mul(S::mul(minus, minus), S::splat(-0.5));
            let tail = S::mul(S::mul(sum, t), exp::<S>(square));
            S::mul_add(minus, tail, S::max(zero, x))
        }
    }
}

struct Silu;

impl Element for Silu {
    /// Below −87 nothing is left.
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::div(S::max(S::splat(-87.0), x), one_and_exp_of_minus::<S>(x)) }
    }
}

pub(super) struct Sigmoid;

impl Element for Sigmoid {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::div(S::splat(1.0), one_and_exp_of_minus::<S>(x)) }
    }
}

pub(super) struct Tanh;

impl Element for Tanh {
    /// `2/(1 + exp(−2x)) − 1`
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::mul_add(S::splat(2.0), Sigmoid::of::<S>(S::add(x, x)), S::splat(-1.0)) }
    }
}

struct Decay;

impl Element for Decay {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        /// `−e^(−1/2)`
        const RATE: f32 = -0.606_530_66;
        // SAFETY: by this function's contract.
        unsafe { exp::<S>(S::mul(S::splat(RATE), Sigmoid::of::<S>(x))) }
    }
}
