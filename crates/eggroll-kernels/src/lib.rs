//! The sources that eggroll's kernels become on GPUs, written on a machine that has none. Not published.
//!
//! Operations run on a device that compiles each kernel, as CubeCL would on the GPU it stands for, keeps the source and computes
//! nothing ([`Recorder`]). So launchers choose types and geometries by themselves. A new kernel needs only a call of its operation in
//! `cases`; [`missing`] names the kernels that no call reaches. `scripts/kernel-check` compiles the sources.

#![cfg(feature = "kernel-sources")]

mod cases;
pub mod costs;
mod floats;
mod integers;
pub mod language_models;
mod msl;
mod recorder;
mod rollouts;
mod targets;
mod tensors;

pub use cases::{launch_all, missing};
pub use msl::msl_of_wgsl;
pub use recorder::{KernelSource, Launch, Recorded, Recorder, Recording};
pub use targets::{Language, Target, all};
