//! The end of every product with low-rank noise: what the noise and the bias of a row's member add to `x·W`.

use super::product::load_some;
use crate::simd::Simd;

/// `t·Aᵀ + b` of one row, from one of its columns on.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct LowRankEpilogue {
    pub rank: usize,
    /// The row's projections `t`, `step` apart, with sign and scale in them.
    pub t: *const f32,
    pub step: usize,
    /// `A : [rank, d_output]`, from the column on.
    pub a: *const f32,
    pub d_output: usize,
    /// The member's bias, from the column on.
    pub bias: Option<*const f32>,
}

impl LowRankEpilogue {
    /// `sum + Σ_k t_k·A_k + b` for `lanes` columns from `c` on.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`; `t` must hold `rank` projections, `A` and the bias these columns.
    #[inline(always)]
    pub(in crate::backend::cpu) unsafe fn add_to<S: Simd>(&self, mut sum: S::F, c: usize, lanes: usize) -> S::F {
        // SAFETY: by this function's contract.
        unsafe {
            for k in 0..self.rank {
                let t = S::splat(*self.t.add(k * self.step));
                sum = S::mul_add(t, load_some::<S>(self.a.add(k * self.d_output + c), lanes), sum);
            }
            match self.bias {
                Some(bias) => S::add(sum, load_some::<S>(bias.add(c), lanes)),
                None => sum,
            }
        }
    }
}
