//! Runs kernels on the instruction set of the processor.

use super::instruction_set::InstructionSet;
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::portable::Portable;
#[cfg(target_feature = "simd128")]
use super::simd128::Simd128;
use super::vector::Simd;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// A computation generic over the instruction set.
pub(crate) trait Kernel {
    /// The result of the computation.
    type Output;

    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// A computation in the forms that it has for single instruction sets. The dispatcher runs it. A [`Kernel`] has them by its generic
/// function; kernels of another kind, generic over another trait, have their own.
///
/// # Safety
///
/// Every method requires that the processor has its instruction set. Methods are to be `#[inline(always)]`: they are compiled for
/// the set by the function that they end up in.
pub(crate) trait MultiIsaKernel: Sized {
    /// The result of the computation.
    type Output;
    /// Whether there is a form for AVX-512; else that for AVX2 runs.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "a set of x86-64"))]
    const AVX512: bool;
    /// Whether there is a form for AVX-512 with VNNI; else that for AVX-512 runs.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "a set of x86-64"))]
    const VNNI: bool;
    /// Whether there is a form for AVX-512 with BF16; else that for VNNI runs.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "a set of x86-64"))]
    const BF16: bool = false;
    /// Whether there is a form for AMX; else that for BF16 runs.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "a set of x86-64"))]
    const AMX: bool = false;
    /// Whether there is a form for Advanced SIMD with dot products; else that for Advanced SIMD runs.
    #[cfg(target_arch = "aarch64")]
    const DOT: bool = false;

    unsafe fn portable(self) -> Self::Output;
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx2(self) -> Self::Output;
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx512(self) -> Self::Output;
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx512_vnni(self) -> Self::Output;
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_bf16(self) -> Self::Output {
        // SAFETY: a processor that has this set has VNNI.
        unsafe { self.avx512_vnni() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn amx(self) -> Self::Output {
        // SAFETY: a processor that has this set has BF16.
        unsafe { self.avx512_bf16() }
    }
    #[cfg(target_arch = "aarch64")]
    unsafe fn neon(self) -> Self::Output;
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon_dot(self) -> Self::Output {
        // SAFETY: a processor that has this set has Advanced SIMD.
        unsafe { self.neon() }
    }
    #[cfg(target_feature = "simd128")]
    #[inline(always)]
    unsafe fn simd128(self) -> Self::Output {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.portable() }
    }
}

/// The forms of a [`Kernel`].
struct OfKernel<K>(K);

impl<K: Kernel> MultiIsaKernel for OfKernel<K> {
    type Output = K::Output;
    const AVX512: bool = true;
    const VNNI: bool = false;

    #[inline(always)]
    unsafe fn portable(self) -> K::Output {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.0.run::<Portable>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx2(self) -> K::Output {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Avx2>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512(self) -> K::Output {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Avx512>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_vnni(self) -> K::Output {
        // SAFETY: a processor that has VNNI has AVX-512.
        unsafe { self.0.run::<Avx512>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon(self) -> K::Output {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Neon>() }
    }
    #[cfg(target_feature = "simd128")]
    #[inline(always)]
    unsafe fn simd128(self) -> K::Output {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.0.run::<Simd128>() }
    }
}

/// Runs `kernel` on the detected instruction set.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    dispatch_multi_isa(OfKernel(kernel))
}

/// Runs `kernel` on a given instruction set.
///
/// # Safety
///
/// The processor must have it ([`InstructionSet::available`]).
#[inline]
pub(crate) unsafe fn dispatch_on<K: Kernel>(set: InstructionSet, kernel: K) -> K::Output {
    // SAFETY: by this function's contract.
    unsafe { dispatch_forms_on(set, OfKernel(kernel)) }
}

/// Runs the form for the detected instruction set.
#[inline]
pub(crate) fn dispatch_multi_isa<F: MultiIsaKernel>(forms: F) -> F::Output {
    // SAFETY: what is detected is one of the sets that the processor has.
    unsafe { dispatch_forms_on(InstructionSet::detected(), forms) }
}

/// Runs the form for a given instruction set, or for the next older one that has a form.
///
/// # Safety
///
/// The processor must have it ([`InstructionSet::available`]).
#[inline]
pub(crate) unsafe fn dispatch_forms_on<F: MultiIsaKernel>(set: InstructionSet, forms: F) -> F::Output {
    // AMX is assembly, which needs no feature.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,avx512bf16,avx2,fma")]
    unsafe fn amx<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.amx() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,avx512bf16,avx2,fma")]
    unsafe fn avx512_bf16<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.avx512_bf16() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,avx2,fma")]
    unsafe fn avx512_vnni<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.avx512_vnni() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
    unsafe fn avx512<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.avx512() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.avx2() }
    }
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn neon<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.neon() }
    }
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn neon_dot<F: MultiIsaKernel>(forms: F) -> F::Output {
        // SAFETY: the caller's set has these features.
        unsafe { forms.neon_dot() }
    }
    // SAFETY: the processor has the set by this function's contract, and with it the older ones.
    unsafe {
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx if F::AMX => amx(forms),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx | InstructionSet::Avx512Bf16 if F::BF16 => avx512_bf16(forms),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx | InstructionSet::Avx512Bf16 | InstructionSet::Avx512Vnni if F::VNNI => {
                avx512_vnni(forms)
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx | InstructionSet::Avx512Bf16 | InstructionSet::Avx512Vnni | InstructionSet::Avx512
                if F::AVX512 =>
            {
                avx512(forms)
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx
            | InstructionSet::Avx512Bf16
            | InstructionSet::Avx512Vnni
            | InstructionSet::Avx512
            | InstructionSet::Avx2 => avx2(forms),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::NeonDot if F::DOT => neon_dot(forms),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon | InstructionSet::NeonDot => neon(forms),
            // The whole program is compiled for it.
            #[cfg(target_feature = "simd128")]
            InstructionSet::Simd128 => forms.simd128(),
            InstructionSet::Portable => forms.portable(),
        }
    }
}
