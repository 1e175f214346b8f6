//! Rollouts of populations and models: in environments that are batched tensors, and in those of burn-rl.

#[cfg(feature = "rl")]
mod host;
mod tensors;
