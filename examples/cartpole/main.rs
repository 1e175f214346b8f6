//! CartPole-v1 by evolution strategies, in a second or so: `cargo run --release --example cartpole`.
//!
//! Every member of the population balances its own pole with its own perturbed network; fitness is the return. `--help` lists the
//! settings, `--seeds 10` trains with ten seeds, `--compare` compares EGGROLL with OpenES, `--throughput` measures speed alone.

mod animation;

use burn::tensor::Device;
use clap::Parser;
use eggroll::nn::Mlp;
use eggroll::rl::CartPole;
use eggroll::run::RunFolder;
use eggroll_examples::Failure;
use eggroll_examples::control::{self, ControlArgs, ControlSettings, ControlTask};
use eggroll_examples::{interrupt, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Balances a pole on a cart by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
struct CartPoleArgs {
    #[command(flatten)]
    args: ControlArgs,
}

struct Balance;

impl ControlTask for Balance {
    type Environment = CartPole;
    type Network = Mlp;

    fn environment(&self) -> CartPole {
        CartPole::new()
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> Mlp {
        control::perceptron(&self.environment(), settings, device)
    }

    fn show(&self, network: &Mlp, settings: &ControlSettings, folder: &RunFolder) -> Result<(), Failure> {
        if settings.normalize || settings.sampled || settings.action_repeat > 1 {
            println!("no animation: it knows plain observations and one best action for each step");
            return Ok(());
        }
        let path = folder.file("policy.svg");
        let states = animation::episode(&self.environment(), network);
        std::fs::write(&path, animation::svg(&states))?;
        println!("the trained policy for {} steps: {}", states.len(), path.display());
        Ok(())
    }
}

pub(crate) fn main() -> ExitCode {
    let (CartPoleArgs { args }, given) = options::parse();
    control::main(&args, &given, &[&Balance])
}
