//! Integer kernels and the instruction sets that they run on, all exact.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod loops;
mod mixed;
#[cfg(target_arch = "aarch64")]
mod neon_dot;
mod portable;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub(in crate::backend::cpu) use loops::IntegerSimd;
pub(in crate::backend::cpu) use mixed::{MixedKernel, dispatch_mixed};
pub(in crate::backend::cpu) use tiles::IntegerTiles;

use crate::simd::{MultiIsaKernel, dispatch_multi_isa};
#[cfg(target_arch = "x86_64")]
use avx2::Avx2;
#[cfg(target_arch = "aarch64")]
use neon_dot::NeonDot;
use portable::Portable;
#[cfg(target_arch = "x86_64")]
use vnni::Vnni;

/// A computation generic over the instruction set.
pub(super) trait IntegerKernel {
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn run<S: IntegerSimd>(self);
}

/// Runs `kernel` on the detected instruction set.
#[inline]
pub(super) fn dispatch<K: IntegerKernel>(kernel: K) {
    dispatch_multi_isa(OfIntegers(kernel));
}

/// The forms of an [`IntegerKernel`].
struct OfIntegers<K>(K);

impl<K: IntegerKernel> MultiIsaKernel for OfIntegers<K> {
    type Output = ();
    const AVX512: bool = false;
    const VNNI: bool = true;
    #[cfg(target_arch = "aarch64")]
    const DOT: bool = true;

    #[inline(always)]
    unsafe fn portable(self) {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.0.run::<Portable>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx2(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Avx2>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512(self) {
        // SAFETY: a processor that has AVX-512 has AVX2.
        unsafe { self.0.run::<Avx2>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_vnni(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Vnni>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon(self) {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.0.run::<Portable>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon_dot(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<NeonDot>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{InstructionSet, dispatch_forms_on};

    /// Says which form runs.
    struct FormName<'a>(&'a mut &'static str);

    impl IntegerKernel for FormName<'_> {
        unsafe fn run<S: IntegerSimd>(self) {
            *self.0 = std::any::type_name::<S>().rsplit(':').next().expect("a name");
        }
    }

    #[test]
    fn dot_products_run_where_they_are_asked_for() {
        for set in InstructionSet::available() {
            let mut form = "";
            // SAFETY: the set is one of those that the processor has.
            unsafe { dispatch_forms_on(set, OfIntegers(FormName(&mut form))) };
            let expected = match set.name() {
                "avx512vnni" | "avx512bf16" | "amx" => "Vnni",
                "avx512" | "avx2" => "Avx2",
                "neondot" => "NeonDot",
                _ => "Portable",
            };
            assert_eq!(form, expected, "{set:?}");
        }
    }
}
