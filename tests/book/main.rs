//! The programs that the book in `docs/book` shows, and the check that its pages are whole.
//!
//! Pages include the parts between `ANCHOR` comments, so that what readers see has been compiled and run.

mod architecture;
mod backends;
mod episodes;
mod getting_started;
mod integers;
mod learner;
mod modules;
mod noisers;
mod optimizers;
mod own_environment;
mod own_layer;
mod own_noiser;
mod pages;
mod profile;
mod reinforcement;
mod reliability;
mod replicas;
mod rollouts;
