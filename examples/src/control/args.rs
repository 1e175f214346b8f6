//! The command line.

use super::settings::ControlSettings;
use crate::bounds::{self, EPISODES, STEPS, WIDTH, at_most};
use crate::names::{ActivationName, NoiserName};
use crate::options::Given;
use crate::trace::TraceArgs;
use clap::ValueEnum;
use eggroll::core::DeviceName;
use eggroll::train::FitnessShaping;
use std::path::PathBuf;

/// When a task counts as solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// The mean policy's return over 100 episodes reaches the environment's threshold, and again over 100 others.
    Policy,
    /// The population's mean return, noise included, reaches it in one generation.
    Paper,
}

/// The options of all tasks.
#[derive(clap::Args, Debug)]
pub struct ControlArgs {
    /// Folder for settings, curves and pictures of each environment.
    #[arg(long, default_value = "runs")]
    pub out: PathBuf,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    /// Solved when: policy (its mean return over 100 episodes, twice) or paper (the population's, in one generation).
    #[arg(long, value_enum, default_value_t = Protocol::Policy, hide_possible_values = true)]
    pub protocol: Protocol,
    /// Train with this number of consecutive seeds and print a table.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Train with EGGROLL and OpenES on the same budget, and print a table.
    #[arg(long, conflicts_with = "noiser")]
    pub compare: bool,
    /// Measure speed only: train for --seconds, solved or not.
    #[arg(long, conflicts_with_all = ["seeds", "compare", "protocol"])]
    pub throughput: bool,
    /// Seconds of the measurement.
    #[arg(long, default_value_t = 10.0, requires = "throughput")]
    pub seconds: f64,
    /// A trace of the run.
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    choices: ControlChoices,
}

impl ControlArgs {
    /// Widths of the hidden layers, if they are given.
    pub fn hidden(&self) -> Option<&[usize]> {
        self.choices.hidden.as_deref()
    }

    /// Refuses options that other options make useless.
    ///
    /// # Errors
    ///
    /// The first of them.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        if self.throughput {
            given
                .refuse(&["budget", "test-every", "restart-after"], "with --throughput, which ends after --seconds")?;
        }
        match self.choices.noiser {
            Some(NoiserName::OpenEs) => given.refuse(&["rank"], "with the noiser open-es"),
            _ => Ok(()),
        }
    }

    /// The settings for an environment, by its name.
    ///
    /// # Errors
    ///
    /// A value that cannot be used.
    pub fn settings(&self, environment: &str) -> Result<ControlSettings, String> {
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return Err(format!("seconds must be positive, not {}", self.seconds));
        }
        bounds::seconds(self.seconds)?;
        let settings = self.choices.over(ControlSettings::of(environment));
        settings.validate()?;
        let seeds = self.seeds.unwrap_or(1);
        if settings.seed.checked_add(seeds).is_none() {
            return Err(format!("--seeds {seeds} from --seed {} on are beyond {}", settings.seed, u64::MAX));
        }
        Ok(settings)
    }
}

/// Settings from the command line; the table of environments has the others.
#[derive(clap::Args, Debug)]
struct ControlChoices {
    /// Noise: eggroll (low-rank) or open-es (dense).
    #[arg(long, value_enum, hide_possible_values = true)]
    noiser: Option<NoiserName>,
    /// Rank of EGGROLL's noise.
    #[arg(long)]
    rank: Option<usize>,
    /// Members of a generation, even.
    #[arg(long)]
    population: Option<usize>,
    /// Episodes of each member in a generation.
    #[arg(long, value_parser = at_most(EPISODES))]
    episodes: Option<usize>,
    /// Give sigma in units of spreads (default 2), lr in units of sigma (0.6).
    #[arg(long)]
    relative: bool,
    /// Noise scale of the first generation.
    #[arg(long)]
    sigma: Option<f64>,
    /// Learning rate of the first generation.
    #[arg(long)]
    lr: Option<f64>,
    /// Factor of noise scale and learning rate for each generation.
    #[arg(long)]
    decay: Option<f64>,
    /// Fitness shaping, as in centered_rank, group_standardized:4, top_pairs:16.
    #[arg(long)]
    shaping: Option<FitnessShaping>,
    /// Widths of the hidden layers, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = at_most(WIDTH))]
    hidden: Option<Vec<usize>>,
    /// Activation between the layers.
    #[arg(long, value_enum)]
    activation: Option<ActivationName>,
    /// Normalize observations by running statistics.
    #[arg(long, value_name = "BOOL")]
    normalize: Option<bool>,
    /// Steps for which an action is repeated.
    #[arg(long, value_parser = at_most(STEPS))]
    action_repeat: Option<usize>,
    /// Sample discrete actions instead of taking the best.
    #[arg(long)]
    sampled: bool,
    /// Environment steps after which training ends, solved or not.
    #[arg(long)]
    budget: Option<u64>,
    /// Generations between two tests of the mean policy.
    #[arg(long)]
    test_every: Option<u64>,
    /// Generations after which an unsolved attempt starts anew; 0: never.
    #[arg(long)]
    restart_after: Option<u64>,
    /// Seed of initial weights, noise and episodes.
    #[arg(long)]
    seed: Option<u64>,
}

impl ControlChoices {
    fn over(&self, table: ControlSettings) -> ControlSettings {
        let table = if self.relative { table.in_relative_units() } else { table };
        ControlSettings {
            noiser: self.noiser.unwrap_or(table.noiser),
            rank: self.rank.unwrap_or(table.rank),
            population: self.population.unwrap_or(table.population),
            episodes: self.episodes.unwrap_or(table.episodes),
            relative: table.relative,
            sigma: self.sigma.unwrap_or(table.sigma),
            lr: self.lr.unwrap_or(table.lr),
            decay: self.decay.unwrap_or(table.decay),
            shaping: self.shaping.clone().unwrap_or(table.shaping),
            hidden: self.hidden.clone().unwrap_or(table.hidden),
            activation: self.activation.unwrap_or(table.activation),
            normalize: self.normalize.unwrap_or(table.normalize),
            action_repeat: self.action_repeat.unwrap_or(table.action_repeat),
            sampled: self.sampled || table.sampled,
            budget: self.budget.unwrap_or(table.budget),
            test_every: self.test_every.unwrap_or(table.test_every),
            restart_after: self.restart_after.unwrap_or(table.restart_after),
            seed: self.seed.unwrap_or(table.seed),
        }
    }
}
