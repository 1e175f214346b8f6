//! A policy for the domino game Texas 42, from points won: `cargo run --release --example texas42`.
//!
//! Every member of the population plays both partners of hundreds of hands against a fixed opponent. It sees no more
//! than a player does: no worlds are sampled, and nothing is looked up. A return of 0 is as many points as the
//! opponent. `expected_q` plays the same game by search.

use burn::tensor::Device;
use clap::{Parser, ValueEnum};
use eggroll::nn::Mlp;
use eggroll_examples::control::{self, ControlArgs, ControlSettings, ControlTask};
use eggroll_examples::texas42::{Opponent, Texas42};
use eggroll_examples::{interrupt, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trains a policy for Texas 42 on points won, by evolution strategies.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
struct Texas42Args {
    /// Who plays against the policy: random, or highest (most pips).
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    opponent: OpponentName,
    #[command(flatten)]
    args: ControlArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OpponentName {
    /// Any legal domino.
    Random,
    /// The legal domino with most pips.
    #[default]
    Highest,
}

/// A perceptron at the table.
struct Hands(Texas42);

impl ControlTask for Hands {
    type Environment = Texas42;
    type Network = Mlp;

    fn environment(&self) -> Texas42 {
        self.0
    }

    fn network(&self, settings: &ControlSettings, device: &Device) -> Mlp {
        control::perceptron(&self.0, settings, device)
    }
}

fn main() -> ExitCode {
    let (Texas42Args { opponent, args }, given) = options::parse();
    let opponent = match opponent {
        OpponentName::Random => Opponent::Random,
        OpponentName::Highest => Opponent::Highest,
    };
    control::main(&args, &given, &[&Hands(Texas42::new(opponent))])
}
