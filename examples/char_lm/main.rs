//! A language model of bytes by evolution strategies, in integers only: `cargo run --release --example char_lm`; with
//! `--model transformer` one that attends, with `--model gru` and `--model float-transformer` in floats.
//!
//! No gradient is ever computed. All members read the same sequences, and weights learn from the loss of every token. In the integer models weights
//! and activations are int8 and sums int32. The better member of each pair has a vote on every weight, and a generation moves a weight by one or not
//! at all. With `--credit mean` each pair reads a separate stream, and only its mean loss counts. `--help` lists the settings.

// Whoever prints past `eggroll::run::terminal` prints into the dashboard.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod chart;
mod float;
mod language_model;
mod report;
mod samples;
mod strategy;
mod timing;
mod train;
mod unused;

use eggroll_examples::interrupt::{checkpoints_in, on_signals};
use eggroll_examples::{main_of, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) fn main() -> ExitCode {
    let (args, given) = options::parse::<args::CharLmArgs>();
    let signals = on_signals("this generation", checkpoints_in(&args.out));
    let tracing = args.trace.clone();
    main_of(|| tracing.around(|| train::run(args, &given, &signals)))
}
