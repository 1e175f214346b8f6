//! A task that cannot be solved without memory, by a recurrent network: `cargo run --release --example memory`.
//!
//! A cue is seen in the first step only, and asked for at the end of the episode. The state of every member's GRU is carried from
//! step to step. `--feed-forward` trains a perceptron instead, which can only guess.

#[path = "../common/control/mod.rs"]
mod control;
mod recurrent;

use burn::tensor::Device;
use clap::Parser;
use control::{Args, Run, Settings, Task};
use eggroll::envs::{DelayedMemory, TensorEnvironment};
use eggroll::nn::Mlp;
use recurrent::Recurrent;
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trains a recurrent network to remember by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
struct Cli {
    /// Steps between the cue and the question.
    #[arg(long, default_value_t = 10)]
    delay: usize,
    /// A perceptron without memory instead: what guessing comes to.
    #[arg(long)]
    feed_forward: bool,
    #[command(flatten)]
    args: Args,
}

/// By a GRU.
struct Remember(DelayedMemory);

impl Task for Remember {
    type Environment = DelayedMemory;
    type Network = Recurrent;

    fn environment(&self) -> DelayedMemory {
        self.0.clone()
    }

    fn network(&self, settings: &Settings, device: &Device) -> Recurrent {
        let width = *settings.hidden.last().unwrap_or(&16);
        Recurrent::new(self.0.observation_size(), width, self.0.actions().outputs(), device)
    }
}

/// By a perceptron.
struct Guess(DelayedMemory);

impl Task for Guess {
    type Environment = DelayedMemory;
    type Network = Mlp;

    fn environment(&self) -> DelayedMemory {
        self.0.clone()
    }

    fn network(&self, settings: &Settings, device: &Device) -> Mlp {
        control::perceptron(&self.0, settings, device)
    }
}

fn main() -> ExitCode {
    let Cli { delay, feed_forward, args } = Cli::parse();
    let environment = DelayedMemory::new(delay);
    let task: Box<dyn Run> = if feed_forward { Box::new(Guess(environment)) } else { Box::new(Remember(environment)) };
    control::main(&args, &[&*task])
}
