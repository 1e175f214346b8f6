#![doc = include_str!("../README.md")]

mod environment;
mod key;
#[cfg(feature = "mujoco")]
pub mod mujoco;

pub use environment::{ActionSpace, HostTransition, TensorEnvironment, Transition};
pub use key::EpisodeKey;
