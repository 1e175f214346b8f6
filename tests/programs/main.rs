//! The examples as programs. They have to be built, which `cargo test --workspace` does.
#![cfg(unix)]

mod refused;
mod signals;
mod starts;
mod support;
mod terminal;
