//! Which instruction sets there are, and which one kernels run on.

use std::sync::OnceLock;

/// Environment variable that overrides the choice of instruction set.
pub(crate) const VARIABLE: &str = "EGGROLL_INSTRUCTION_SET";

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
    /// AVX-512 with VNNI, for products of int8; floats as on AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    /// AVX-512 with VNNI and BF16, for products of bfloat16 too.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
    /// AMX next to all of these, for products of language models on Linux.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// Advanced SIMD, 4 lanes.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Advanced SIMD with dot products, for products of int8; floats as on Advanced SIMD.
    #[cfg(target_arch = "aarch64")]
    NeonDot,
    /// WebAssembly's 128-bit vectors, 4 lanes, in programs that are compiled for them.
    #[cfg(target_feature = "simd128")]
    Simd128,
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
                if is_x86_feature_detected!("avx512vnni") {
                    sets.push(Self::Avx512Vnni);
                    if is_x86_feature_detected!("avx512bf16") {
                        sets.push(Self::Avx512Bf16);
                        if super::amx::is_usable() {
                            sets.push(Self::Amx);
                        }
                    }
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            sets.push(Self::Neon);
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                sets.push(Self::NeonDot);
            }
        }
        #[cfg(target_feature = "simd128")]
        sets.push(Self::Simd128);
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
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => "avx512vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bf16 => "avx512bf16",
            #[cfg(target_arch = "x86_64")]
            Self::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => "neondot",
            #[cfg(target_feature = "simd128")]
            Self::Simd128 => "simd128",
        }
    }

    /// The instruction set that float kernels run on: that of the same name, but for sets that add products of other numbers only. Floats are
    /// rounded alike on processors where it is the same.
    pub fn of_floats(&self) -> Self {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni | Self::Avx512Bf16 | Self::Amx => Self::Avx512,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => Self::Neon,
            other => *other,
        }
    }

    /// The instruction set that kernels run on: the preferred one of [`available`](Self::available), or the one that the
    /// environment variable `EGGROLL_INSTRUCTION_SET` names. Its names are `portable`, `avx2`, `avx512`, `avx512vnni`, `avx512bf16`, `amx`,
    /// `neon`, `neondot` and `simd128`.
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
