//! Plain Rust.

use super::loops::IntegerSimd;
use crate::arithmetic::integer::exp2_sixteenths;
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Sums, Tile};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl IntegerSimd for Portable {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut Tile) {
        *out = [*starts; ROWS];
        for step in 0..steps {
            // SAFETY: by the trait's contract.
            let w = unsafe { &*panel.add(step * LINE).cast::<[[i8; 4]; COLUMNS]>() };
            for (r, out) in out.iter_mut().enumerate() {
                // SAFETY: by the trait's contract.
                let x = unsafe { x.add(r * stride + 4 * step).cast::<[u8; 4]>().read() };
                for (sum, w) in out.iter_mut().zip(w) {
                    *sum = (0..4).fold(*sum, |sum, k| sum.wrapping_add(i32::from(x[k]) * i32::from(w[k])));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        // SAFETY: by the trait's contract.
        let (x, b) = unsafe { (std::slice::from_raw_parts(x, len), std::slice::from_raw_parts(b, len)) };
        x.iter().zip(b).fold(0, |sum, (x, b)| sum.wrapping_add(i32::from(*x) * i32::from(*b)))
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        logits.iter().map(|logit| exp2_sixteenths((i32::from(*logit) + 128) as u32)).sum()
    }
}
