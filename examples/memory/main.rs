//! A task that cannot be solved without memory, by a recurrent network: `cargo run --release --example memory`.
//!
//! A cue is seen in the first step only, and asked for at the end of the episode. The state of every member's GRU is carried from
//! step to step. `--feed-forward` trains a perceptron instead, which can only guess.

mod recurrent;

use burn::tensor::Device;
use clap::Parser;
use eggroll::nn::Mlp;
use eggroll::rl::{Memory, TensorEnvironment};
use eggroll_examples::bounds::STEPS;
use eggroll_examples::control::{self, AnyTask, ControlArgs, ControlSettings, ControlTask};
use eggroll_examples::{interrupt, main_of, options};
use recurrent::MemoryPolicy;
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trains a recurrent network to remember by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
struct MemoryArgs {
    /// Cues that one is chosen from.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=i64::from(u16::MAX)))]
    cues: u32,
    /// Steps from the cue to the question.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=STEPS as i64))]
    delay: u32,
    /// Train a perceptron without memory, which can only guess.
    #[arg(long)]
    feed_forward: bool,
    #[command(flatten)]
    args: ControlArgs,
}

/// By a GRU.
struct Remember(Memory);

impl ControlTask for Remember {
    type Environment = Memory;
    type Network = MemoryPolicy;

    fn environment(&self) -> Memory {
        self.0
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> MemoryPolicy {
        let width = *settings.hidden.last().unwrap_or(&16);
        MemoryPolicy::new(self.0.observation_size(), width, self.0.actions().outputs(), device)
    }
}

/// By a perceptron.
struct Guess(Memory);

impl ControlTask for Guess {
    type Environment = Memory;
    type Network = Mlp;

    fn environment(&self) -> Memory {
        self.0
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> Mlp {
        control::perceptron(&self.0, settings, device)
    }
}

fn main() -> ExitCode {
    let (MemoryArgs { cues, delay, feed_forward, args }, given) = options::parse();
    let refused = match (feed_forward, args.hidden()) {
        (true, _) => None,
        (false, _) if given.has("activation") => Some("--activation cannot be used with a GRU, which has its own"),
        (false, Some([_, _, ..])) => Some("--hidden must be one width, that of the GRU, without --feed-forward"),
        (false, _) => None,
    };
    if let Some(refused) = refused {
        return main_of(|| Err::<(), _>(refused));
    }
    let environment = Memory::new(cues as usize, delay as usize);
    let task: Box<dyn AnyTask> =
        if feed_forward { Box::new(Guess(environment)) } else { Box::new(Remember(environment)) };
    control::main(&args, &given, &[&*task])
}
