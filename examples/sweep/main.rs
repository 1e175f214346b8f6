//! Hyper-parameter sweeps: `cargo run --release --example sweep -- examples/sweep/mnist.toml`.
//!
//! A TOML file names a command, its parameters and what of its `RESULT` line is to be as high, or as low, as possible. Every
//! configuration is a separate process; each that has ended is a file, so that a sweep that is stopped, by whatever means, continues
//! where it was. `mnist.toml` next to this file explains every setting; the program is `examples/src/sweep`.

use clap::Parser;
use eggroll_examples::sweep::{Args, execute};
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(execute(&Args::parse()))
}
