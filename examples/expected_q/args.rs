//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::core::DeviceName;
use eggroll_examples::bounds::at_most;
use eggroll_examples::interrupt;
use eggroll_examples::options::Given;
use eggroll_examples::trace::TraceArgs;
use std::path::PathBuf;

/// Plays the domino game Texas 42 by expected values over sampled worlds: regret, speed, matches, and one decision in words.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct ExpectedQArgs {
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    /// Weights of the oracle; written with --train. Default: weights in the example.
    #[arg(long, value_name = "FILE")]
    pub oracle: Option<PathBuf>,
    /// Seed of deals, worlds, weights and noise.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Worlds of a decision.
    #[arg(long, default_value_t = 100, value_parser = at_most(10_000))]
    pub worlds: usize,
    /// Temperature of the policy that weighs worlds by moves, in points.
    #[arg(long, default_value_t = 1.0)]
    pub temperature: f64,
    /// Hands that are played side by side.
    #[arg(long, default_value_t = 64, value_parser = at_most(4_096))]
    pub games: usize,
    /// Deals of a match, each played twice, sides changed; 0: no matches.
    #[arg(long, default_value_t = 50, value_parser = at_most(1_000_000))]
    pub deals: usize,
    /// Who names trumps: player, or longest (nobody: the longest suit).
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub trumps: Naming,
    /// Do not measure decisions and worlds per second.
    #[arg(long)]
    pub no_speed: bool,
    /// Also write the decision that is shown as a picture.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Train an oracle instead, by eggroll or backpropagation.
    #[arg(long, value_enum, value_name = "METHOD", requires = "oracle", hide_possible_values = true)]
    pub train: Option<Method>,
    /// Deals that the oracle is trained on.
    #[arg(long, default_value_t = 30_000, value_parser = at_most(1_000_000), requires = "train")]
    pub train_deals: usize,
    /// Steps of training: batches, or generations of EGGROLL.
    #[arg(long, default_value_t = 30_000, value_parser = at_most(10_000_000), requires = "train")]
    pub train_steps: usize,
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// Options of playing that training does not have.
const OF_PLAY: [&str; 7] = ["worlds", "temperature", "games", "deals", "trumps", "no-speed", "svg"];

impl ExpectedQArgs {
    /// Refuses options that other options make useless.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        match self.train {
            Some(_) => given.refuse(&OF_PLAY, "with --train, which plays nothing"),
            None if self.deals == 0 => given.refuse(&["trumps"], "with --deals 0"),
            None => Ok(()),
        }
    }
}

/// Who names trumps. The player with most dominoes of one number of pips declares and bids 30, in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Naming {
    /// The player: by expected values, by chance, or, where the highest domino is played, the longest suit.
    #[default]
    Player,
    /// Nobody: they are the suit of which the declarer has most.
    Longest,
}

/// How the oracle is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Evolution strategies, without a gradient.
    Eggroll,
    /// Burn's autodiff.
    Backpropagation,
}
