//! The program `eggroll`.
//!
//! `eggroll apply MODEL RUN.replay --out FOLDER` makes a fine-tuned language model of the pretrained one and a replay log.

#![forbid(unsafe_code)]

mod apply;

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
}

fn main() -> ExitCode {
    let Cli { command: Command::Apply(args) } = Cli::parse();
    match apply::run(&args) {
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
