//! The examples as programs. They have to be built, which `scripts/test` does.
#![cfg(unix)]

mod refused;
mod signals;
mod starts;
mod stops;
mod support;
mod terminal;
