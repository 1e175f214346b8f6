//! Environments, as batched tensors and those of MuJoCo, rollouts in them and in those of burn-rl, decisions by sampled worlds.

mod clones;
mod environments;
mod expected_values;
#[cfg(feature = "host")]
mod far_observations;
mod heads;
#[cfg(feature = "host")]
mod host_rollouts;
#[cfg(feature = "mujoco")]
mod mujoco;
mod not_a_number;
mod odd_environments;
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
mod on_device;
mod rollouts;
mod without_noise;
