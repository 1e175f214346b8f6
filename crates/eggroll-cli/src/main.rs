//! The program `eggroll`.
//!
//! `eggroll apply MODEL RUN.replay --out FOLDER` makes a fine-tuned language model of the pretrained one and a replay log; `eggroll verify MODEL RUN.replay` asks a
//! random share of the members again.

#![forbid(unsafe_code)]

mod apply;
mod tune;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Language models that were fine-tuned by evolution strategies: a pretrained model and a log of seeds and scores.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the fine-tuned model, bit for bit as the run made it.
    Apply(apply::ApplyArgs),
    /// Ask a random share of the members again: do model, log and reward belong together?
    Verify(verify::VerifyArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Apply(args) => apply::run(&args),
        Command::Verify(args) => verify::run(&args),
    };
    match done {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
