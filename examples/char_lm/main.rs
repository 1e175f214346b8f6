//! A language model of bytes by evolution strategies, in integers only: `cargo run --release --example char_lm`; with
//! `--model transformer` one that attends, with `--model gru` and `--model float-transformer` in floats.
//!
//! No gradient is ever computed. In the integer models the population reads a text in parallel streams, and of each pair of members it
//! counts which predicted better: weights and activations are int8, sums int32, the better member has a vote on every weight, and a
//! generation moves a weight by one or not at all. In the float models all members read the same sequences, weights learn from the loss of
//! every token, and Muon moves them. `--help` lists the settings.

// Whoever prints past `eggroll::run::terminal` prints into the dashboard.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod chart;
mod float;
mod language_model;
mod report;
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
