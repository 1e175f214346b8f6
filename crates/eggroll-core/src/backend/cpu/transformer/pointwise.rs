//! Functions of single rows.

use crate::backend::cpu::exp::{exp, one_and_exp_of_minus};
use crate::backend::cpu::tile::MAX_COLUMNS;
use crate::simd::{Kernel, Simd, dispatch};
use std::marker::PhantomData;

/// `gate ← gate/(1 + exp(−gate))·up`, the gated activation of SwiGLU.
///
/// # Panics
///
/// Panics if the lengths differ.
pub(crate) fn swiglu(gate: &mut [f32], up: &[f32]) {
    assert!(gate.len() == up.len(), "gate of {} elements for {}", gate.len(), up.len());
    dispatch(Gated::<Silu> { gate, up, function: PhantomData });
}

/// `gate ← gelu(gate)·up`, the gated activation of GeGLU, with `gelu(x) = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`.
///
/// # Panics
///
/// Panics if the lengths differ.
pub(crate) fn geglu(gate: &mut [f32], up: &[f32]) {
    assert!(gate.len() == up.len(), "gate of {} elements for {}", gate.len(), up.len());
    dispatch(Gated::<GeluTanh> { gate, up, function: PhantomData });
}

/// A function of the gate.
trait Gate {
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn of<S: Simd>(gate: S::F, up: S::F) -> S::F;
}

struct Gated<'a, G> {
    gate: &'a mut [f32],
    up: &'a [f32],
    function: PhantomData<G>,
}

impl<G: Gate> Kernel for Gated<'_, G> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let len = self.up.len();
        let (gate, up) = (self.gate.as_mut_ptr(), self.up.as_ptr());
        // SAFETY: the processor has the instruction set by this function's contract; both slices are equally long.
        unsafe {
            // A loop, not a closure: a closure of this size is not inlined, and its vectors go through memory.
            let mut c = 0;
            while c + S::LANES <= len {
                S::store(gate.add(c), G::of::<S>(S::load(gate.add(c)), S::load(up.add(c))));
                c += S::LANES;
            }
            if c < len {
                let y = G::of::<S>(S::load_first(gate.add(c), len - c), S::load_first(up.add(c), len - c));
                S::store_first(gate.add(c), y, len - c);
            }
        }
    }
}

struct Silu;

impl Gate for Silu {
    /// `x/(1 + exp(−x))·up`
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F, up: S::F) -> S::F {
        // SAFETY: by this function's contract.
        unsafe { S::mul(S::div(x, one_and_exp_of_minus::<S>(x)), up) }
    }
}

struct GeluTanh;

impl Gate for GeluTanh {
    /// `x/(1 + exp(−2·z))·up`, `z` being what the formula takes the tanh of.
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F, up: S::F) -> S::F {
        /// `2·√(2/π)`
        const FACTOR: f32 = 1.595_769_2;
        /// `0.044715` times that.
        const CUBIC: f32 = 0.071_354_816;
        // SAFETY: by this function's contract.
        unsafe {
            let twice = S::mul(x, S::mul_add(S::mul(x, x), S::splat(CUBIC), S::splat(FACTOR)));
            S::mul(S::div(x, one_and_exp_of_minus::<S>(twice)), up)
        }
    }
}

/// `ln Σ exp(x)`
pub(crate) fn log_sum_exp(x: &[f32]) -> f32 {
    dispatch(LogSumExp(x))
}

struct LogSumExp<'a>(&'a [f32]);

impl Kernel for LogSumExp<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let (len, values) = (self.0.len(), self.0.as_ptr());
        // SAFETY: the processor has the instruction set by this function's contract; whole vectors end inside the slice.
        unsafe {
            let largest = largest::<S>(self.0);
            if !largest.is_finite() {
                return if largest == f32::NEG_INFINITY { largest } else { f32::NAN };
            }
            let shift = S::splat(-largest);
            let mut sum = S::splat(0.0);
            let mut c = 0;
            while c + S::LANES <= len {
                sum = S::add(sum, exp::<S>(S::add(S::load(values.add(c)), shift)));
                c += S::LANES;
            }
            let rest: f32 = self.0[c..].iter().map(|x| (x - largest).exp()).sum();
            (S::sum(sum) + rest).ln() + largest
        }
    }
}

/// The largest element; NaN counts for nothing.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(super) unsafe fn largest<S: Simd>(x: &[f32]) -> f32 {
    let whole = x.len() / S::LANES * S::LANES;
    let mut lanes = [f32::NEG_INFINITY; MAX_COLUMNS];
    // SAFETY: the processor has the instruction set by this function's contract; whole vectors end inside the slice.
    unsafe {
        let mut largest = S::splat(f32::NEG_INFINITY);
        let mut c = 0;
        while c < whole {
            largest = S::max(S::load(x.as_ptr().add(c)), largest);
            c += S::LANES;
        }
        S::store(lanes.as_mut_ptr(), largest);
    }
    lanes.iter().chain(&x[whole..]).fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a })
}

/// Rotary position embedding of rows `[rows, heads, head_dim]` in place: the pair `(x[i], x[i + half])` is turned by the angle of its
/// position, whose cosine and sine are `[positions, half]`.
///
/// # Panics
///
/// Panics if a position is not in the tables.
pub(crate) fn rotary(x: &mut [f32], heads: usize, positions: &[u32], cosines: &[f32], sines: &[f32], half: usize) {
    dispatch(Rotary { x, heads, positions, cosines, sines, half });
}

struct Rotary<'a> {
    x: &'a mut [f32],
    heads: usize,
    positions: &'a [u32],
    cosines: &'a [f32],
    sines: &'a [f32],
    half: usize,
}

impl Kernel for Rotary<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, heads, positions, cosines, sines, half } = self;
        for (row, position) in x.chunks_exact_mut(heads * 2 * half).zip(positions) {
            let at = *position as usize * half;
            let (cosines, sines) = (&cosines[at..][..half], &sines[at..][..half]);
            for head in row.chunks_exact_mut(2 * half) {
                let (first, second) = head.split_at_mut(half);
                for ((a, b), (cosine, sine)) in first.iter_mut().zip(second).zip(cosines.iter().zip(sines)) {
                    (*a, *b) = (*a * cosine - *b * sine, *b * cosine + *a * sine);
                }
            }
        }
    }
}
