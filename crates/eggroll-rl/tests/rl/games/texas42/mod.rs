//! Texas 42.

mod environment;
mod errors;
mod observation;
mod rules;
mod slow;
mod solver;
pub mod support;
mod tensors;
mod worlds;
