#![doc = include_str!("../README.md")]

mod environment;
mod key;

pub use environment::{ActionSpace, HostTransition, TensorEnvironment, Transition};
pub use key::EpisodeKey;
