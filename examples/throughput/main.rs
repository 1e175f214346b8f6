//! What a population costs beside plain inference: forward and estimate of a small network, over sizes, populations, ranks
//! and noise sources, beside the same arithmetic in JAX if asked for.

mod args;
#[path = "../common/backend.rs"]
#[expect(dead_code, reason = "one backend is chosen and opened, no more is asked of it")]
mod backend;
mod cells;
mod columns;
mod jax;
mod network;
mod report;
#[path = "../common/trace.rs"]
mod trace;

use args::Args;
use clap::Parser;
use std::process::ExitCode;

/// Large tensors come and go with every pass: an allocator that gives their pages back each time costs a third of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match args.trace.around(|| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    args.validate()?;
    let mut cells = cells::measure(args)?;
    if args.jax {
        cells.extend(jax::measure(args)?);
    }
    report::print(args, &cells);
    Ok(())
}
