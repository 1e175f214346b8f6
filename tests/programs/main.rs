//! The examples as programs: signals, exit status, numbers that cannot be, scripts that start them. They have to be built, which
//! `cargo test --workspace` does.
#![cfg(unix)]

mod help;
mod numbers;
mod output;
mod signals;
mod slurm;
mod small;
mod support;
mod terminal;
mod threads;
mod unused;
