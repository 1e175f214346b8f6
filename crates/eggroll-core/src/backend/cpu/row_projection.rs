//! Gram–Schmidt, twice for stability, and `Qᵀ·Q·G`.

use super::product::Product;
use super::tile::{MAX_COLUMNS, Panels, Strided};
use crate::ops::DEPENDENT;
use crate::simd::{Kernel, Simd, dispatch};

/// Writes `projected : [d_input, d_output]`, zeros before; `x : [rows, d_input]`.
pub(crate) fn row_projection(gradient: &[f32], x: &[f32], [d_input, d_output]: [usize; 2], projected: &mut [f32]) {
    if projected.is_empty() {
        return;
    }
    let mut basis = Vec::with_capacity(x.len()); // [rank, d_input]
    for row in x.chunks_exact(d_input) {
        dispatch(Extend { basis: &mut basis, row });
    }
    let rank = basis.len() / d_input;
    // Loads of the last columns may run past the end of a panel's row.
    let mut padded = Vec::with_capacity(gradient.len() + MAX_COLUMNS);
    padded.extend_from_slice(gradient);
    padded.resize(gradient.len() + MAX_COLUMNS, 0.0);
    let mut inner = vec![0.0; rank * d_output + MAX_COLUMNS]; // Q·G: [rank, d_output]
    dispatch(Product {
        rows: rank,
        columns: d_output,
        depth: d_input,
        x: Strided { values: &basis, row: d_input, depth: 1 },
        panels: Panels::of_rows(&padded, d_output),
        target: &mut inner,
        add: false,
    });
    dispatch(Product {
        rows: d_input,
        columns: d_output,
        depth: rank,
        x: Strided { values: &basis, row: 1, depth: d_input },
        panels: Panels::of_rows(&inner, d_output),
        target: projected,
        add: false,
    });
}

/// Adds to an orthonormal basis the direction of a row that it does not span yet.
struct Extend<'a> {
    basis: &'a mut Vec<f32>,
    row: &'a [f32],
}

impl Kernel for Extend<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let len = self.row.len();
        let start = self.basis.len();
        self.basis.extend_from_slice(self.row);
        let (before, v) = self.basis.split_at_mut(start);
        // SAFETY: the processor has the instruction set by this function's contract; `v` and every chunk have `len` elements.
        unsafe {
            let norm = dot::<S>(v, v);
            for _ in 0..2 {
                for q in before.chunks_exact(len) {
                    let overlap = dot::<S>(q, v);
                    add_scaled::<S>(v, q, -overlap);
                }
            }
            let left = dot::<S>(v, v);
            // Also false for NaN and for a row of zeros.
            if left > DEPENDENT * norm {
                let scale = 1.0 / left.sqrt();
                v.iter_mut().for_each(|v| *v *= scale);
            } else {
                self.basis.truncate(start);
            }
        }
    }
}

/// # Safety
///
/// The processor must have the instruction set `S`; `b` must be as long as `a`.
#[inline(always)]
unsafe fn dot<S: Simd>(a: &[f32], b: &[f32]) -> f32 {
    let whole = a.len() / (4 * S::LANES) * 4 * S::LANES;
    // SAFETY: whole vectors lie inside both slices.
    unsafe {
        let mut sums = [S::splat(0.0); 4];
        let mut i = 0;
        while i < whole {
            for (j, sum) in sums.iter_mut().enumerate() {
                let at = i + j * S::LANES;
                *sum = S::mul_add(S::load(a.as_ptr().add(at)), S::load(b.as_ptr().add(at)), *sum);
            }
            i += 4 * S::LANES;
        }
        let sum = S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
        a[whole..].iter().zip(&b[whole..]).fold(sum, |sum, (a, b)| S::scalar_mul_add(*a, *b, sum))
    }
}

/// `v += scale·q`.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `q` must be as long as `v`.
#[inline(always)]
unsafe fn add_scaled<S: Simd>(v: &mut [f32], q: &[f32], scale: f32) {
    let whole = v.len() / S::LANES * S::LANES;
    // SAFETY: whole vectors lie inside both slices.
    unsafe {
        let factor = S::splat(scale);
        let mut i = 0;
        while i < whole {
            let sum = S::mul_add(factor, S::load(q.as_ptr().add(i)), S::load(v.as_ptr().add(i)));
            S::store(v.as_mut_ptr().add(i), sum);
            i += S::LANES;
        }
    }
    for (v, q) in v[whole..].iter_mut().zip(&q[whole..]) {
        *v = S::scalar_mul_add(scale, *q, *v);
    }
}
