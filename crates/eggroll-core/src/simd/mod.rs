//! The few vector operations that the CPU kernels are written in, once per instruction set.
//!
//! A kernel is a generic function over [`Simd`]; [`dispatch`] compiles it for every instruction set and picks one at run
//! time. Every operation is exactly rounded (fused multiply-add, square root) or integer: all instruction sets give the
//! same bits. WebAssembly alone rounds [`Simd::mul_add`] twice: its noise has the same bits, its sums of products have not.
//! Products of bfloat16, whose sums differ between processors, are outside of it.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod instruction_set;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_feature = "simd128")]
mod simd128;
mod vector;

#[cfg(test)]
pub(crate) use dispatch::dispatch_forms_on;
pub(crate) use dispatch::{Kernel, MultiIsaKernel, dispatch, dispatch_multi_isa, dispatch_on};
pub use instruction_set::InstructionSet;
#[cfg(test)]
pub(crate) use instruction_set::VARIABLE;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use portable::Portable;
#[cfg(target_feature = "simd128")]
pub(crate) use simd128::Simd128;
pub(crate) use vector::Simd;
#[cfg(target_arch = "x86_64")]
pub(crate) use {avx2::Avx2, avx512::Avx512};
