//! Environments: as batched tensors, and those of MuJoCo.

mod environments;
#[cfg(feature = "mujoco")]
mod mujoco;
