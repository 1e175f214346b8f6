//! MNIST by evolution strategies: `cargo run --release --example mnist`.
//!
//! No gradient is ever computed: every generation evaluates a population of perturbed networks on one mini-batch and
//! moves the network towards the perturbations that did better. `--help` lists the settings, `--compare` sets EGGROLL
//! beside OpenES and backpropagation, `--model cnn` trains convolutions, `--noiser q-eggroll` does everything in integers.

mod args;
#[path = "../common/backend.rs"]
#[expect(dead_code, reason = "one backend is chosen and opened, no more is asked of it")]
mod backend;
mod chart;
mod classifier;
mod cnn;
mod compare;
mod data;
mod integer;
#[path = "../common/interrupt.rs"]
mod interrupt;
mod model;
#[path = "../common/run_folder.rs"]
mod run_folder;
mod settings;
#[path = "../common/trace.rs"]
mod trace;
mod train;

use clap::Parser;
use interrupt::on_ctrl_c;
use std::process::ExitCode;

/// Large tensors come and go with every pass: an allocator that gives their pages back each time costs a third of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let interrupter = on_ctrl_c("saving", || trace::interrupted());
    let tracing = args.trace.clone();
    let outcome = tracing.around(|| if args.compare { compare::run(args) } else { train::run(args, interrupter) });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
