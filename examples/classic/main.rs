//! The classic control tasks one after the other: `cargo run --release --example classic -- --compare --seeds 5`.
//!
//! Prints which are solved by Gymnasium's usual thresholds, in how many environment steps and seconds, by EGGROLL and by OpenES. The
//! returns are Gymnasium's: no reward is shaped. `--env` chooses tasks.

use burn::tensor::Device;
use clap::{Parser, ValueEnum};
use eggroll::nn::Mlp;
use eggroll::rl::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum, TensorEnvironment};
use eggroll_examples::control::{self, AnyTask, ControlArgs, ControlSettings, ControlTask};
use eggroll_examples::{interrupt, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Solves classic control tasks by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
struct ClassicArgs {
    /// The tasks: all, unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    env: Vec<EnvironmentName>,
    #[command(flatten)]
    args: ControlArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EnvironmentName {
    CartPole,
    Pendulum,
    Acrobot,
    MountainCar,
    MountainCarContinuous,
}

/// A perceptron in an environment.
struct Classic<E>(E);

impl<E: TensorEnvironment + Clone> ControlTask for Classic<E> {
    type Environment = E;
    type Network = Mlp;

    fn environment(&self) -> E {
        self.0.clone()
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> Mlp {
        control::perceptron(&self.0, settings, device)
    }
}

impl EnvironmentName {
    fn task(self) -> Box<dyn AnyTask> {
        match self {
            Self::CartPole => Box::new(Classic(CartPole::new())),
            Self::Pendulum => Box::new(Classic(Pendulum::new())),
            Self::Acrobot => Box::new(Classic(Acrobot::new())),
            Self::MountainCar => Box::new(Classic(MountainCar::new())),
            Self::MountainCarContinuous => Box::new(Classic(MountainCarContinuous::new())),
        }
    }
}

fn main() -> ExitCode {
    let (ClassicArgs { env, args }, given) = options::parse();
    let names = if env.is_empty() { EnvironmentName::value_variants() } else { &env };
    let tasks: Vec<Box<dyn AnyTask>> = names.iter().map(|name| name.task()).collect();
    let tasks: Vec<&dyn AnyTask> = tasks.iter().map(|task| &**task).collect();
    control::main(&args, &given, &tasks)
}
