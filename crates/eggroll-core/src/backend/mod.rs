//! Kernels by hardware. `cpu` works on slices; `slices` adapts it to backends whose tensors are slices,
//! `flex` (Burn's CPU backend) and `ndarray` (its predecessor). `cube` runs on devices through CubeCL.

mod backends;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) mod cpu;
#[cfg(feature = "cube")]
pub(crate) mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod integer_slices;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod memo;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod row_slices;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod slice_backend;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod slices;
