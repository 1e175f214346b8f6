//! The command line.

use clap::Parser;
use eggroll::core::DeviceName;
use std::path::PathBuf;

/// Trains for a long time, in floats and in integers, and checks that memory stays flat and that replay reproduces every checkpoint.
#[derive(Parser, Debug)]
pub struct SoakArgs {
    /// Generations of each of the two runs.
    #[arg(long, default_value_t = 10_000)]
    pub generations: u64,
    /// Members of a generation, even.
    #[arg(long, default_value_t = 64)]
    pub population: usize,
    /// Generations between checkpoints, and between memory measurements.
    #[arg(long, default_value_t = 250)]
    pub every: u64,
    /// MiB that memory may grow between halves of the run; more is a leak.
    #[arg(long, default_value_t = 8)]
    pub tolerance: u64,
    /// Seed of noise and data.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder for checkpoints and logs. Default: a temporary one.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
}

impl SoakArgs {
    pub fn validate(&self) -> Result<(), String> {
        for (name, value) in [("generations", self.generations), ("every", self.every)] {
            if value == 0 {
                return Err(format!("{name} must be at least 1, not 0"));
            }
        }
        Ok(())
    }
}
