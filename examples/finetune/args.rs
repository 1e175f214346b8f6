//! The command line.

use crate::damage::DamageKind;
use clap::{Parser, ValueEnum};
use eggroll::core::DeviceName;
use eggroll::prelude::*;
use eggroll_examples::bounds::{WIDTH, at_most};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DamageName {
    /// Set weights of small magnitude to 0, permanently.
    Prune,
    /// Weights are rounded to few bits.
    Quantize,
}

/// Damages a digit classifier and recovers its accuracy by EGGROLL, with the accuracy as fitness.
#[derive(Parser, Debug)]
pub struct FinetuneArgs {
    /// Folder of MNIST's four files, or others in that format (IDX), plain or gzip. Default: data/mnist.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist"), hide_default_value = true)]
    pub data: PathBuf,
    /// Load the network (layers.0.weight, …) from SafeTensors, untrained.
    #[arg(long, value_name = "FILE", conflicts_with = "epochs")]
    pub weights: Option<PathBuf>,
    /// Save the network before the damage, as SafeTensors.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Epochs of backpropagation.
    #[arg(long, default_value_t = 2)]
    pub epochs: u64,
    /// Widths of the hidden layers, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "64", value_parser = at_most(WIDTH))]
    pub hidden: Vec<usize>,
    /// The damage: prune (small weights become 0) or quantize (few bits).
    #[arg(long, value_enum, default_value_t = DamageName::Prune, hide_possible_values = true)]
    damage: DamageName,
    /// Share of each layer that pruning removes. Default: 0.8.
    #[arg(long)]
    share: Option<f64>,
    /// Bits of a quantized weight. Default: 2.
    #[arg(long)]
    bits: Option<u32>,
    /// Generations of the recovery.
    #[arg(long, default_value_t = 400)]
    pub generations: u64,
    /// Members of a generation, even.
    #[arg(long, default_value_t = 256)]
    pub population: usize,
    /// Images of a generation's mini-batch.
    #[arg(long, default_value_t = 256)]
    pub batch: usize,
    /// Rank of the noise.
    #[arg(long, default_value_t = 1)]
    rank: usize,
    /// Noise scale.
    #[arg(long, default_value_t = 0.02)]
    sigma: f64,
    /// Learning rate.
    #[arg(long, default_value_t = 0.002)]
    lr: f64,
    /// Seed of initial weights, noise and batches.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
}

impl FinetuneArgs {
    /// The damage that is asked for.
    pub fn damage(&self) -> Result<DamageKind, String> {
        let share = self.share.unwrap_or(0.8);
        let bits = self.bits.unwrap_or(2);
        match self.damage {
            DamageName::Prune if self.bits.is_some() => Err("--bits cannot be used with --damage prune".to_owned()),
            DamageName::Quantize if self.share.is_some() => {
                Err("--share cannot be used with --damage quantize".to_owned())
            }
            DamageName::Prune if !(share > 0.0 && share < 1.0) => {
                Err(format!("the share of pruned weights must be between 0 and 1, not {share}"))
            }
            DamageName::Quantize if !(1..=8).contains(&bits) => Err(format!("bits must be 1 to 8, not {bits}")),
            DamageName::Prune => Ok(DamageKind::Prune { share }),
            DamageName::Quantize => Ok(DamageKind::Quantize { bits }),
        }
    }

    /// Refuses what the strategy does not check itself.
    pub fn validate(&self, images: usize) -> Result<(), String> {
        if self.batch == 0 || self.batch > images {
            return Err(format!("a batch of {} needs 1 to {images} training images", self.batch));
        }
        if self.hidden.contains(&0) {
            return Err(format!("hidden layers {:?}: a width is 0", self.hidden));
        }
        if self.epochs == 0 || self.generations == 0 {
            let counts = [self.epochs, self.generations];
            return Err(format!("epochs and generations must be at least 1, not {counts:?}"));
        }
        Ok(())
    }

    /// The strategy of the recovery.
    pub fn strategy(&self) -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(self.rank), OptimizerConfig::default())
            .with_population_size(self.population)
            .with_sigma(self.sigma)
            .with_learning_rate(self.lr)
            .with_seed(self.seed)
    }
}
