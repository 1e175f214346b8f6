//! Kernels that multiply integers and finish in floats.

#[cfg(target_arch = "aarch64")]
use super::neon_dot::NeonDot;
use super::portable::Portable;
use super::tiles::IntegerTiles;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, tiles::Amx, vnni::Vnni};
#[cfg(target_arch = "aarch64")]
use crate::simd::Neon;
use crate::simd::{self, MultiIsaKernel, Simd, dispatch_multi_isa};

/// A computation generic over the instruction sets of floats and of integers.
pub(in crate::backend::cpu) trait MixedKernel {
    /// # Safety
    ///
    /// The processor must have both instruction sets.
    unsafe fn run<S: Simd, I: IntegerTiles>(self);
}

/// Runs `kernel` on the detected instruction set.
#[inline]
pub(in crate::backend::cpu) fn dispatch_mixed<K: MixedKernel>(kernel: K) {
    dispatch_multi_isa(Mixed(kernel));
}

/// The forms of a [`MixedKernel`].
struct Mixed<K>(K);

impl<K: MixedKernel> MultiIsaKernel for Mixed<K> {
    type Output = ();
    const AVX512: bool = true;
    const VNNI: bool = true;
    const AMX: bool = true;
    #[cfg(target_arch = "aarch64")]
    const DOT: bool = true;

    #[inline(always)]
    unsafe fn portable(self) {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.0.run::<simd::Portable, Portable>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx2(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<simd::Avx2, Avx2>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512(self) {
        // SAFETY: a processor that has AVX-512 has AVX2.
        unsafe { self.0.run::<simd::Avx512, Avx2>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_vnni(self) {
        // SAFETY: the processor has the instruction set by the trait's contract, and with it AVX-512.
        unsafe { self.0.run::<simd::Avx512, Vnni>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn amx(self) {
        // SAFETY: the processor has the instruction set by the trait's contract, and with it AVX-512.
        unsafe { self.0.run::<simd::Avx512, Amx>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Neon, Portable>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon_dot(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Neon, NeonDot>() }
    }
    #[cfg(target_feature = "simd128")]
    #[inline(always)]
    unsafe fn simd128(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<simd::Simd128, Portable>() }
    }
}
