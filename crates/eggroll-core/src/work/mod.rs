//! Shared by all modules, without formulas: counts of work, spans, devices and their names, numbers of settings, messages.

pub mod counters;
pub(crate) mod device;
pub(crate) mod device_name;
pub(crate) mod launch_count;
pub mod messages;
pub mod numbers;
pub mod profile;
pub mod sync;
