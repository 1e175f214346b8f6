//! Fine-tunes a pretrained language model without gradients: `cargo run --release --features lm --example llm`.
//!
//! SmolLM2-135M-Instruct learns to say whether a word is positive or negative, in ten minutes on two cores. Each step scores 32 members
//! together, each with separate low-rank noise on all its matrices. `scripts/smollm2` fetches the model once. `--task` has other scores:
//! rewards of what the members write, and the likelihood of your own texts. `--help` lists the settings.

// Whoever prints past `eggroll::run::terminal` prints into the progress line.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod chart;
mod grade;
mod lessons;
mod measure;
mod peer;
mod quantized;
mod sharing;
mod task;
mod train;

use args::{LlmArgs, Mode};
use eggroll_examples::interrupt::{nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, given) = options::parse::<LlmArgs>();
    let (mode, log) = (args.mode(), args.out.join(train::REPLAY_LOG));
    let is_worker = args.sharing.is_worker();
    let kept = move || match mode {
        Mode::Train if is_worker => "another worker gets its slice".to_owned(),
        Mode::Train => format!("every step is in {}", log.display()),
        _ => nothing(),
    };
    let signals = on_signals("this step", kept);
    let run = || -> Result<Ending, Failure> {
        args.refuse_unused(&given)?;
        match mode {
            Mode::Train => return args.trace.around(|| train::run(&args, &signals)),
            Mode::Probe => train::probe(&args, &signals)?,
            Mode::Throughput => measure::run(&args, &signals)?,
            Mode::Grade => grade::run(&args)?,
        }
        Ok(Ending::Finished)
    };
    main_of(run)
}
