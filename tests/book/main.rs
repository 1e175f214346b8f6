//! The programs that the book in `docs/book` shows, and the check that its pages are whole.
//!
//! Pages show the parts between `ANCHOR` comments (see `embedded.rs`), so that readers see what has been compiled and run.

mod adapters;
mod architecture;
mod backends;
mod choosing;
mod deploy;
mod embedded;
mod episodes;
mod errors;
#[path = "../../crates/eggroll-lm/tests/shared/fetched.rs"]
mod fetched;
mod forecast;
mod getting_started;
mod hidden_information;
mod host_scores;
mod integers;
mod language_models;
mod learner;
mod modules;
mod noisers;
mod optimizers;
mod own_environment;
mod own_layer;
mod own_noiser;
mod own_observer;
mod own_transform;
mod pages;
mod precision;
mod profile;
mod recipes;
mod reinforcement;
mod reliability;
mod replicas;
mod rollouts;
