//! The programs that the book in `docs/book` shows, and the check that its pages are whole.
//!
//! Pages include the parts between `ANCHOR` comments, so that what readers see has been compiled and run.

mod backends;
mod episodes;
mod getting_started;
mod integers;
mod modules;
mod noisers;
mod own_layer;
mod own_noiser;
mod pages;
mod profile;
mod replicas;
mod rollouts;
