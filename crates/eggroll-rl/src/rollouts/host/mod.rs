//! Episodes of a whole population in environments of burn-rl.

mod config;
mod play;
mod runner;
mod task;

pub use config::HostRolloutConfig;
pub use runner::HostRollouts;
pub use task::HostTask;
