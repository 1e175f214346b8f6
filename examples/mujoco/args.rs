//! The command line, and the strategy and policy it stands for.

use crate::task::BodyName;
use clap::Parser;
use eggroll::core::DeviceName;
use eggroll::nn::MlpConfig;
use eggroll::prelude::*;
use eggroll_examples::bounds::{EPISODES, STEPS, WIDTH, at_most};
use eggroll_examples::interrupt;
use eggroll_examples::names::{ActivationName, NoiserName};
use eggroll_examples::options::Given;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Trains a policy for one of MuJoCo's bodies by evolution strategies.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct MujocoArgs {
    /// Folder for checkpoints, log and curve.
    #[arg(long, default_value = "runs/mujoco")]
    pub out: PathBuf,
    /// The body's description. Default: by its name in EGGROLL_MUJOCO_ASSETS.
    #[arg(long)]
    pub xml: Option<PathBuf>,
    /// Continue the run in the output folder, with its settings.
    #[arg(long, conflicts_with = "compare")]
    pub resume: bool,
    /// Also train by OpenES for as many steps, and draw both curves.
    #[arg(long)]
    pub compare: bool,
    /// Measure steps per second with and without a policy, and end.
    #[arg(long, conflicts_with_all = ["resume", "compare"])]
    pub throughput: bool,
    /// Minutes of training, including evaluation.
    #[arg(long, default_value_t = 30.0)]
    pub minutes: f64,
    /// Maximum number of generations.
    #[arg(long)]
    pub generations: Option<u64>,
    /// Environment steps after which no generation begins.
    #[arg(long)]
    pub env_steps: Option<u64>,
    /// Backend of the policy: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    #[command(flatten)]
    pub settings: MujocoSettings,
}

/// The settings of a run: saved with it.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub struct MujocoSettings {
    /// The body.
    #[arg(long, value_enum, default_value_t)]
    pub body: BodyName,
    /// Noise: eggroll (low-rank) or open-es (dense).
    #[arg(long, value_enum, default_value_t = NoiserName::Eggroll, hide_possible_values = true)]
    pub noiser: NoiserName,
    /// Rank of EGGROLL's noise.
    #[arg(long, default_value_t = 4)]
    pub rank: usize,
    /// Members of a generation, even.
    #[arg(long, default_value_t = 256)]
    pub population: usize,
    /// Episodes of a member.
    #[arg(long, default_value_t = 1, value_parser = at_most(EPISODES))]
    pub episodes: usize,
    /// Longest training episode; evaluations have all 1000 steps.
    #[arg(long, default_value_t = 1000, value_parser = at_most(STEPS))]
    pub steps: usize,
    /// Noise scale.
    #[arg(long, default_value_t = 0.05)]
    pub sigma: f64,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.02)]
    pub lr: f64,
    /// Train with the reward for not falling too; results always have it.
    #[arg(long)]
    pub survival: bool,
    /// Widths of the hidden layers.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 64], value_parser = at_most(WIDTH))]
    pub hidden: Vec<usize>,
    /// Activation after the hidden layers.
    #[arg(long, value_enum, default_value_t = ActivationName::Tanh)]
    pub activation: ActivationName,
    /// Seed of parameters, noise and episodes.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Generations between two evaluations of the policy.
    #[arg(long, default_value_t = 5)]
    pub evaluate_every: u64,
}

/// Options next to --resume.
const WITH_RESUME: [&str; 7] = ["resume", "out", "xml", "minutes", "generations", "env-steps", "backend"];

impl MujocoArgs {
    /// Refuses options that other options make useless.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        if self.resume {
            return given.refuse_all_but(&WITH_RESUME, "with --resume, which keeps the settings of the run");
        }
        if self.throughput {
            let of_training = ["out", "minutes", "generations", "env-steps", "evaluate-every"];
            given.refuse(&of_training, "with --throughput, which trains nothing")?;
        }
        match self.settings.noiser {
            NoiserName::OpenEs if !self.compare => given.refuse(&["rank"], "with the noiser open-es"),
            _ => Ok(()),
        }
    }
}

impl MujocoSettings {
    /// Refuses what nobody else checks.
    pub fn validate(&self) -> Result<(), String> {
        if self.evaluate_every == 0 {
            return Err("evaluate-every must be at least 1, not 0".to_owned());
        }
        if self.hidden.contains(&0) {
            return Err(format!("hidden layers {:?}: a width is 0", self.hidden));
        }
        Ok(())
    }

    pub fn strategy(&self) -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::new(self.noiser.noiser(self.rank), OptimizerConfig::default())
            .with_population_size(self.population)
            .with_sigma(self.sigma)
            .with_learning_rate(self.lr)
            .with_shaping(FitnessShaping::CenteredRank)
            .with_seed(self.seed)
    }

    pub fn policy(&self, inputs: usize, outputs: usize) -> MlpConfig {
        let sizes = [inputs].iter().chain(&self.hidden).chain(&[outputs]).copied().collect();
        MlpConfig::new(sizes).with_activation(self.activation.activation())
    }
}
