//! A linear recurrence whose gates see the input only.

use super::activation::{Element, Sigmoid};
use super::product::load_some;
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Elements that one task takes at least.
const TASK: usize = 1 << 13;

/// Writes every element of the states `h : [batch, steps, width]`, `h_t = (1 − f_t)·k_t·h_{t−1} + f_t·c_t` with `f = sigmoid(forget)`, from
/// `[forget, candidate, kept, state]` of the shapes `[batch, steps, width]` (twice), `[batch, steps]` and `[batch, width]`.
///
/// # Panics
///
/// Panics if the lengths do not fit.
pub(crate) fn gated_recurrence(operands: [&[f32]; 4], [steps, width]: [usize; 2], states: &mut [MaybeUninit<f32>]) {
    let [forget, candidate, kept, state] = operands;
    let each = steps * width;
    if each == 0 || states.is_empty() {
        return;
    }
    let batch = states.len() / each;
    let lengths = [forget.len(), candidate.len(), kept.len(), state.len(), states.len()];
    assert_eq!(lengths, [batch * each, batch * each, batch * steps, batch * width, batch * each], "a recurrence");
    let rows = states.par_chunks_exact_mut(each).zip(forget.par_chunks_exact(each));
    let rows = rows.zip(candidate.par_chunks_exact(each)).zip(kept.par_chunks_exact(steps));
    rows.zip(state.par_chunks_exact(width)).with_min_len(TASK.div_ceil(each)).for_each(
        |((((states, forget), candidate), kept), state)| {
            dispatch(RecurrenceSequence { forget, candidate, kept, state, states });
        },
    );
}

/// One sequence.
struct RecurrenceSequence<'a> {
    forget: &'a [f32],
    candidate: &'a [f32],
    kept: &'a [f32],
    state: &'a [f32],
    states: &'a mut [MaybeUninit<f32>],
}

impl Kernel for RecurrenceSequence<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (steps, width) = (self.kept.len(), self.state.len());
        let states = self.states.as_mut_ptr().cast::<f32>();
        assert!([self.forget.len(), self.candidate.len(), self.states.len()] == [steps * width; 3], "a sequence");
        let mut column = 0;
        while column < width {
            let lanes = S::LANES.min(width - column);
            // SAFETY: the processor has the instruction set by this function's contract; all rows hold `width` elements, of which the vector
            // takes those that are left, and there are `steps` of them.
            unsafe {
                let one = S::splat(1.0);
                let mut h = load_some::<S>(self.state.as_ptr().add(column), lanes);
                for (step, kept) in self.kept.iter().enumerate() {
                    let at = step * width + column;
                    let f = Sigmoid::of::<S>(load_some::<S>(self.forget.as_ptr().add(at), lanes));
                    let c = load_some::<S>(self.candidate.as_ptr().add(at), lanes);
                    h = S::mul(h, S::splat(*kept));
                    h = S::mul_add(f, c, S::mul(S::sub(one, f), h));
                    if lanes == S::LANES {
                        S::store(states.add(at), h);
                    } else {
                        S::store_first(states.add(at), h, lanes);
                    }
                }
            }
            column += S::LANES;
        }
    }
}
