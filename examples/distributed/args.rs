//! The command line.

use clap::Parser;
use eggroll::nats::NatsConfig;
use eggroll_examples::Failure;
use eggroll_examples::interrupt::HELP;
use eggroll_examples::nats::{NatsArgs, Role};
use std::path::PathBuf;

/// Trains a classifier of spirals on any number of machines, over a NATS server with JetStream.
#[derive(Parser, Debug)]
#[command(after_help = HELP)]
pub struct DistributedArgs {
    /// coordinator (trains), worker (evaluates slices), alone (one process) or remove (the run's data on the server).
    #[arg(value_enum, hide_possible_values = true)]
    pub role: Role,
    /// Name of the run; an existing one on the server is continued.
    #[arg(long, default_value = "spirals")]
    pub run: String,
    #[command(flatten)]
    nats: NatsArgs,
    /// Members of a slice.
    #[arg(long, default_value_t = 64)]
    slice: usize,
    /// Members of a generation.
    #[arg(long, default_value_t = 1024)]
    pub population: usize,
    /// Generations of the run.
    #[arg(long, default_value_t = 300)]
    pub generations: u64,
    /// Points of the data.
    #[arg(long, default_value_t = 384)]
    pub points: usize,
    /// Hidden units.
    #[arg(long, default_value_t = 32)]
    pub width: usize,
    /// Seed of initial weights and noise.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder of the coordinator's checkpoints.
    #[arg(long, default_value = "runs/distributed")]
    out: PathBuf,
    /// Generations between two checkpoints.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
}

impl DistributedArgs {
    /// Folder of the coordinator's checkpoints.
    pub fn folder(&self) -> PathBuf {
        self.out.join(&self.run)
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<NatsConfig, Failure> {
        // The data are a function of their number.
        let config = self.nats.config(&self.run, format!("spirals 1, {} points", self.points))?;
        Ok(NatsConfig { slice_members: self.slice, ..config })
    }
}
