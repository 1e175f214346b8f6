//! Episodes of a whole population in environments of burn-rl.

mod config;
mod play;
mod task;

pub use config::{HostRolloutConfig, HostRollouts};
pub use task::HostTask;
