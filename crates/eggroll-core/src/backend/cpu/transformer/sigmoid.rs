//! The logistic function and what is made of it, element by element.

use super::exp::{exp, one_and_exp_of_minus};
use crate::simd::{Kernel, Simd, dispatch};

/// `x ← 1/(1 + exp(−x))`
pub(crate) fn sigmoid(x: &mut [f32]) {
    dispatch(Map(x, Sigmoid));
}

/// `x ← tanh(x)`
pub(crate) fn tanh(x: &mut [f32]) {
    dispatch(Map(x, Tanh));
}

/// `x ← exp(−e^(−1/2)/(1 + exp(−x)))`
pub(crate) fn wkv7_decay(x: &mut [f32]) {
    dispatch(Map(x, Decay));
}

/// A function of single elements.
trait Element {
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn of<S: Simd>(x: S::F) -> S::F;
}

struct Map<'a, E>(&'a mut [f32], E);

impl<E: Element> Kernel for Map<'_, E> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (len, x) = (self.0.len(), self.0.as_mut_ptr());
        // SAFETY: the processor has the instruction set by this function's contract; whole vectors end inside the slice, the last part is
        // loaded and stored by count.
        unsafe {
            // A loop, not a closure: a closure of this size is not inlined, and its vectors go through memory.
            let mut c = 0;
            while c + S::LANES <= len {
                S::store(x.add(c), E::of::<S>(S::load(x.add(c))));
                c += S::LANES;
            }
            if c < len {
                S::store_first(x.add(c), E::of::<S>(S::load_first(x.add(c), len - c)), len - c);
            }
        }
    }
}

struct Sigmoid;

impl Element for Sigmoid {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::div(S::splat(1.0), one_and_exp_of_minus::<S>(x)) }
    }
}

struct Tanh;

impl Element for Tanh {
    /// `2/(1 + exp(−2x)) − 1`
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::fma(S::splat(2.0), Sigmoid::of::<S>(S::add(x, x)), S::splat(-1.0)) }
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
