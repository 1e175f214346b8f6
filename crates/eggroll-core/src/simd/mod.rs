//! The few vector operations that the CPU kernels are written in, once per instruction set.
//!
//! A kernel is a generic function over [`Simd`]; [`dispatch`] compiles it for every instruction set and picks
//! one at run time. Every operation is exactly rounded (fused multiply-add, square root) or integer, so that all
//! instruction sets give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use portable::Portable;

use std::sync::OnceLock;

/// Environment variable that overrides the choice of instruction set.
pub(crate) const VARIABLE: &str = "EGGROLL_INSTRUCTION_SET";

/// Vector operations of one instruction set.
///
/// `F` holds `LANES` floats, `U` holds `LANES` unsigned 32-bit integers, `W` holds `LANES / 2` 64-bit lanes of
/// which Philox uses the low 32 bits.
///
/// # Safety
///
/// Every method requires that the processor has the instruction set; `load` and `store` also require `LANES`
/// valid elements behind the pointer (no alignment).
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// Floats per vector.
    const LANES: usize;
    /// Rows of the matrix microkernel: as many accumulators as registers allow.
    const ROWS: usize;
    type F: Copy;
    type U: Copy;
    type W: Copy;

    unsafe fn splat(value: f32) -> Self::F;
    unsafe fn load(source: *const f32) -> Self::F;
    unsafe fn store(target: *mut f32, value: Self::F);
    /// The first `count < LANES` elements, the other lanes 0; nothing behind them is read.
    unsafe fn load_first(source: *const f32, count: usize) -> Self::F;
    /// Stores the first `count < LANES` lanes.
    unsafe fn store_first(target: *mut f32, value: Self::F, count: usize);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    unsafe fn sqrt(a: Self::F) -> Self::F;
    /// The larger of each lane; `b` if one is NaN.
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    /// Sum of the lanes, by halves, the same order for every instruction set of one width.
    unsafe fn sum(a: Self::F) -> f32;
    unsafe fn to_bits(a: Self::F) -> Self::U;
    unsafe fn from_bits(a: Self::U) -> Self::F;
    /// Signed 32-bit integers to floats.
    unsafe fn from_i32(a: Self::U) -> Self::F;
    /// Lane-wise `if bit 30 of mask { a } else { b }`.
    unsafe fn select_bit30(mask: Self::U, a: Self::F, b: Self::F) -> Self::F;

    unsafe fn usplat(value: u32) -> Self::U;
    unsafe fn uadd(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn usub(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uand(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uor(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uxor(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn shl<const BITS: u32>(a: Self::U) -> Self::U;
    unsafe fn shr<const BITS: u32>(a: Self::U) -> Self::U;
    /// Arithmetic shift right.
    unsafe fn sar<const BITS: u32>(a: Self::U) -> Self::U;

    unsafe fn wsplat(value: u32) -> Self::W;
    /// `first, first + 2, first + 4, …`
    unsafe fn wcount(first: u32) -> Self::W;
    /// 64-bit product of the low halves.
    unsafe fn wmul(a: Self::W, b: Self::W) -> Self::W;
    /// High halves moved to the low halves.
    unsafe fn whigh(a: Self::W) -> Self::W;
    unsafe fn wxor3(a: Self::W, b: Self::W, c: Self::W) -> Self::W;
    /// Low halves of `even` and `odd`, interleaved.
    unsafe fn interleave(even: Self::W, odd: Self::W) -> Self::U;
}

/// A computation generic over the instruction set.
pub(crate) trait Kernel {
    /// What the computation returns.
    type Output;

    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstructionSet {
    /// Plain Rust, 16 lanes.
    Portable,
    /// AVX2 and FMA, 8 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, DQ, VL and BW, 16 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Advanced SIMD, 4 lanes.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// The instruction sets that this processor has, the preferred one last.
    pub fn available() -> Vec<Self> {
        let mut sets = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("fma")
            {
                sets.push(Self::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            sets.push(Self::Neon);
        }
        sets
    }

    /// The name that the environment variable `EGGROLL_INSTRUCTION_SET` knows it by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }

    /// The instruction set that kernels run on: the preferred one of [`available`](Self::available), or the one that
    /// the environment variable `EGGROLL_INSTRUCTION_SET` names (`portable`, `avx2`, `avx512`, `neon`).
    ///
    /// # Panics
    ///
    /// Panics if the variable names a set that this processor does not have.
    pub fn detected() -> Self {
        static DETECTED: OnceLock<InstructionSet> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let available = Self::available();
            let Ok(wanted) = std::env::var(VARIABLE) else {
                return *available.last().expect("portable is always there");
            };
            let found = available.iter().copied().find(|set| set.name() == wanted);
            found.unwrap_or_else(|| {
                let names: Vec<_> = available.iter().map(Self::name).collect();
                panic!("{VARIABLE}={wanted}: this processor has {names:?}")
            })
        })
    }
}

/// Runs `kernel` on the detected instruction set.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: `detected` checked the processor.
    unsafe { dispatch_on(InstructionSet::detected(), kernel) }
}

/// Runs `kernel` on a given instruction set.
///
/// # Safety
///
/// The processor must have it ([`InstructionSet::available`]).
#[inline]
pub(crate) unsafe fn dispatch_on<K: Kernel>(set: InstructionSet, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
    unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the caller checked the processor.
        unsafe { kernel.run::<Avx512>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the caller checked the processor.
        unsafe { kernel.run::<Avx2>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn neon<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the caller checked the processor.
        unsafe { kernel.run::<Neon>() }
    }
    // SAFETY: by this function's contract.
    unsafe {
        match set {
            InstructionSet::Portable => kernel.run::<Portable>(),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => avx2(kernel),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => avx512(kernel),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => neon(kernel),
        }
    }
}
