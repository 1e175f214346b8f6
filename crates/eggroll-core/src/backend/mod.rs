//! Kernels by hardware: `cpu` works on slices, `flex` adapts it to Burn's CPU backend, `ndarray` to its predecessor.

#[cfg(feature = "flex")]
pub(crate) mod cpu;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "ndarray")]
mod ndarray;
