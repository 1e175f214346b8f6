//! Pendulum-v1 by evolution strategies, continuous torques: `cargo run --release --example pendulum`.
//!
//! `--seeds 5` trains with five seeds, `--compare` compares EGGROLL with OpenES; the table of settings is in
//! `examples/src/control/settings.rs`.

use burn::tensor::Device;
use clap::Parser;
use eggroll::nn::Mlp;
use eggroll::rl::Pendulum;
use eggroll_examples::control::{self, ControlArgs, ControlSettings, ControlTask};
use eggroll_examples::{interrupt, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Swings a pendulum up by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
struct PendulumArgs {
    #[command(flatten)]
    args: ControlArgs,
}

struct SwingUp;

impl ControlTask for SwingUp {
    type Environment = Pendulum;
    type Network = Mlp;

    fn environment(&self) -> Pendulum {
        Pendulum::new()
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> Mlp {
        control::perceptron(&self.environment(), settings, device)
    }
}

fn main() -> ExitCode {
    let (PendulumArgs { args }, given) = options::parse();
    control::main(&args, &given, &[&SwingUp])
}
