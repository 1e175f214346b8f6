//! Whole networks without tensors: chains of layers on the host, episodes on devices, transformers on the host.

#[cfg(any(feature = "flex", feature = "ndarray"))]
pub mod chain;
pub mod device_rollout;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub mod transformer;
