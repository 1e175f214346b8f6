//! Heads turned by their position, and rescaled.

use crate::arithmetic::integer::transformer::{Rotations, rotations};
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Bytes of a task.
const TASK: usize = 32 * 1024;

/// Writes `y`, as `x : [sequences · steps, heads · d]`.
pub(crate) fn rotary(x: &[i8], width: usize, steps: usize, first_position: usize, d: usize, y: &mut [i8]) {
    if x.is_empty() {
        return;
    }
    let tables = rotations(first_position, steps, d);
    // Whole sequences, so that a task begins with the first position.
    let each = steps * width;
    let count = (TASK / each).max(1) * each;
    y.par_chunks_mut(count).zip(x.par_chunks(count)).for_each(|(y, x)| {
        reuse(&TURNED, |turned| dispatch(Turn { x, width, steps, d, tables: &tables, turned, y }));
    });
}

thread_local! {
    static TURNED: Cell<Vec<i16>> = const { Cell::new(Vec::new()) };
}

struct Turn<'a> {
    x: &'a [i8],
    width: usize,
    steps: usize,
    d: usize,
    tables: &'a Rotations,
    turned: &'a mut Vec<i16>,
    y: &'a mut [i8],
}

impl IntegerKernel for Turn<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { x, width, steps, d, tables, turned, y } = self;
        turned.resize(d, 0);
        let half = d / 2;
        for (row, (y, x)) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
            let at = row % steps * half;
            let (cos, sin) = (&tables.cos[at..at + half], &tables.sin[at..at + half]);
            for (y, x) in y.chunks_exact_mut(d).zip(x.chunks_exact(d)) {
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe {
                    S::turn(x, cos, sin, turned);
                    S::rescale(turned, y);
                }
            }
        }
    }
}
