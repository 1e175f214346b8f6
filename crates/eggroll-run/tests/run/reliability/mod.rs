//! What can go wrong, and what happens then: `docs/reliability.md` has the kinds.

mod allocations;
mod configuration;
mod custom_noiser;
mod damage;
mod files;
mod folder;
mod kill;
mod limits;
mod locks;
mod master_weights;
mod memory;
mod noise_table;
mod numbers;
mod refusals;
mod replay;
mod resume;
mod running_settings;
mod starts;
mod support;
mod torture;
mod verify;

pub use support::{child, copy};
