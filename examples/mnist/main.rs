//! MNIST by evolution strategies: `cargo run --release --example mnist`.
//!
//! No gradient is ever computed: every generation evaluates a population of perturbed networks on one mini-batch and
//! moves the network towards the perturbations that did better. `--help` lists the settings, `--compare` compares EGGROLL
//! against OpenES and backpropagation, `--model cnn` trains convolutions, `--noiser q-eggroll` does everything in integers.

// Whoever prints past `eggroll::run::terminal` prints into the dashboard.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod chart;
mod classifier;
mod cnn;
mod compare;
mod evolution;
mod filters;
mod integer;
mod settings;
mod train;

use eggroll_examples::interrupt::{checkpoints_in, nothing, on_signals};
use eggroll_examples::{main_of, options};
use std::process::ExitCode;

/// Large tensors come and go with every pass: an allocator that gives their pages back each time costs a third of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, given) = options::parse::<args::MnistArgs>();
    let signals = match args.compare {
        true => on_signals("this batch", nothing),
        false => on_signals("this generation", checkpoints_in(&args.out)),
    };
    let tracing = args.trace.clone();
    main_of(|| {
        tracing.around(|| match args.compare {
            true => compare::run(args, &given, &signals),
            false => train::run(args, &given, &signals),
        })
    })
}
