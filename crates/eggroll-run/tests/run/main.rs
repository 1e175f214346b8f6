//! Runs: what is written, resumed, replayed, distributed and refused.

mod checkpoint;
mod contract;
mod count;
mod diagnostics;
mod distribution;
mod gradient;
mod horizon;
mod integer;
mod integer_parts;
mod learner;
mod logs;
mod optimizers;
mod reliability;
mod roles;
mod text;
mod transformer;
mod with_state;
