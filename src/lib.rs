//! x
pub use eggroll_core as core;
