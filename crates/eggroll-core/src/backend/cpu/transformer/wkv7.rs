//! The recurrence of RWKV-7.

use crate::backend::cpu::product::load_some;
use crate::simd::{Kernel, Simd, dispatch};

/// Vectors of a state's row that are taken together: with 16 lanes all of a head of 64.
const VECTORS: usize = 4;

/// New rows of one sequence, in all heads.
pub(crate) struct Wkv7<'a> {
    pub heads: usize,
    pub head_dim: usize,
    /// This and the next six: `[rows, heads, head_dim]`.
    pub decay: &'a [f32],
    pub receptance: &'a [f32],
    pub key: &'a [f32],
    pub value: &'a [f32],
    pub removal: &'a [f32],
    pub rate: &'a [f32],
    /// To be written.
    pub out: &'a mut [f32],
    /// `[heads, head_dim of keys, head_dim of values]`
    pub state: &'a mut [f32],
}

impl Wkv7<'_> {
    /// Runs it.
    ///
    /// # Panics
    ///
    /// Panics if lengths do not fit.
    pub(crate) fn run(self) {
        let (heads, dim) = (self.heads, self.head_dim);
        assert!(self.state.len() == heads * dim * dim, "the state of {heads} heads of {dim}: {}", self.state.len());
        let len = self.out.len();
        assert!(len.is_multiple_of(heads * dim), "rows of {heads} heads of {dim}: {len}");
        for rows in [self.decay, self.receptance, self.key, self.value, self.removal, self.rate] {
            assert!(rows.len() == len, "{} values for {len}", rows.len());
        }
        if len > 0 {
            dispatch(self);
        }
    }
}

impl Kernel for Wkv7<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (width, dim) = (self.heads * self.head_dim, self.head_dim);
        // The state of a head stays in the first-level cache while its rows pass.
        for (head, state) in self.state.chunks_exact_mut(dim * dim).enumerate() {
            for row in 0..self.out.len() / width {
                let at = row * width + head * dim;
                let of = |rows: &[f32]| rows[at..][..dim].as_ptr();
                let step = HeadRow {
                    dim,
                    decay: of(self.decay),
                    receptance: of(self.receptance),
                    key: of(self.key),
                    value: of(self.value),
                    removal: of(self.removal),
                    rate: of(self.rate),
                    out: self.out[at..][..dim].as_mut_ptr(),
                    state: state.as_mut_ptr(),
                };
                let mut column = 0;
                // SAFETY: the processor has the instruction set by this function's contract; all pointers of the step are those of
                // slices cut to `dim` elements, `dim·dim` of the state, and columns end inside.
                unsafe {
                    while column + VECTORS * S::LANES <= dim {
                        step.columns::<S, VECTORS>(column, S::LANES);
                        column += VECTORS * S::LANES;
                    }
                    while column < dim {
                        step.columns::<S, 1>(column, S::LANES.min(dim - column));
                        column += S::LANES;
                    }
                }
            }
        }
    }
}

/// One row of one head.
struct HeadRow {
    dim: usize,
    decay: *const f32,
    receptance: *const f32,
    key: *const f32,
    value: *const f32,
    removal: *const f32,
    rate: *const f32,
    out: *mut f32,
    state: *mut f32,
}

impl HeadRow {
    /// `N` vectors of the state's columns, of which the last has `lanes` elements.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`. All pointers must be valid for `dim` elements, the state's for `dim·dim`. The
    /// columns must lie among the first `dim`, and `lanes` must be all lanes unless `N` is 1.
    #[inline(always)]
    unsafe fn columns<S: Simd, const N: usize>(&self, column: usize, lanes: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut removed = [S::splat(0.0); N];
            for j in 0..self.dim {
                let row = self.state.add(j * self.dim + column);
                let minus = S::splat(-*self.removal.add(j));
                for (n, removed) in removed.iter_mut().enumerate() {
                    *removed = S::mul_add(load_some::<S>(row.add(n * S::LANES), lanes), minus, *removed);
                }
            }
            let mut value = [S::splat(0.0); N];
            for (n, value) in value.iter_mut().enumerate() {
                *value = load_some::<S>(self.value.add(column + n * S::LANES), lanes);
            }
            let mut out = [S::splat(0.0); N];
            for j in 0..self.dim {
                let row = self.state.add(j * self.dim + column);
                let (decay, key) = (S::splat(*self.decay.add(j)), S::splat(*self.key.add(j)));
                let rate = S::splat(*self.removal.add(j) * *self.rate.add(j));
                let receptance = S::splat(*self.receptance.add(j));
                for n in 0..N {
                    let at = row.add(n * S::LANES);
                    let next = S::mul(load_some::<S>(at, lanes), decay);
                    let next = S::mul_add(value[n], key, S::mul_add(removed[n], rate, next));
                    store_some::<S>(at, next, lanes);
                    out[n] = S::mul_add(next, receptance, out[n]);
                }
            }
            for (n, out) in out.iter().enumerate() {
                store_some::<S>(self.out.add(column + n * S::LANES), *out, lanes);
            }
        }
    }
}

/// Stores `lanes` elements; a plain store where that is all of them.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `target` must hold `lanes` elements.
#[inline(always)]
unsafe fn store_some<S: Simd>(target: *mut f32, value: S::F, lanes: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        if lanes == S::LANES {
            S::store(target, value);
        } else {
            S::store_first(target, value, lanes);
        }
    }
}
