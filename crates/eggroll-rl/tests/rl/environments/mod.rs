//! The environments: against Gymnasium, one form against the other, from their keys, and in batches of episodes.

mod episodes;
mod forms;
mod gymnasium;
mod keys;
pub mod support;
