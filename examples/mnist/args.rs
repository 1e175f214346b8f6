//! The command line.

use crate::cnn::ConvolutionSettings;
use crate::compare::Method;
use crate::settings::{MnistSettings, ModelName, Preset};
use clap::Parser;
use eggroll::core::DeviceName;
use eggroll::prelude::*;
use eggroll_examples::bounds::{EPOCHS, WIDTH, at_most};
use eggroll_examples::interrupt;
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::options::Given;
use eggroll_examples::trace::TraceArgs;
use std::path::PathBuf;

/// Trains a multilayer perceptron or a convolutional network on MNIST by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct MnistArgs {
    /// Folder of MNIST's four files, or others in that format (IDX), plain or gzip. Default: data/mnist.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist"), hide_default_value = true)]
    pub data: PathBuf,
    /// Folder for checkpoints, log and accuracy curve.
    #[arg(long, default_value = "runs/mnist")]
    pub out: PathBuf,
    /// Continue the run in the output folder, with its settings.
    #[arg(long)]
    pub resume: bool,
    /// Compare EGGROLL, OpenES and backpropagation on one model.
    #[arg(long)]
    pub compare: bool,
    /// Epochs of --compare.
    #[arg(long, default_value_t = 1, value_parser = at_most(EPOCHS), requires = "compare")]
    pub epochs: usize,
    /// What is compared. Default: eggroll,open-es,backpropagation.
    #[arg(long, value_enum, value_delimiter = ',', requires = "compare", default_values = ["eggroll", "open-es", "backpropagation"], hide_possible_values = true, hide_default_value = true)]
    pub methods: Vec<Method>,
    #[command(flatten)]
    pub observers: ObserverArgs,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    /// Devices that share each population: flex, cuda:0, cuda:1, …
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["backend", "compare"])]
    pub devices: Vec<DeviceName>,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub settings: MnistChoices,
}

/// Settings from the command line; the preset has the others.
#[derive(clap::Args, Debug)]
pub struct MnistChoices {
    /// Defaults of the settings below: quick or long (5 x generations).
    #[arg(long, value_enum, default_value_t = Preset::Quick, hide_possible_values = true)]
    preset: Preset,
    /// The network: mlp, or cnn (convolutions before it).
    #[arg(long, value_enum, hide_possible_values = true)]
    model: Option<ModelName>,
    /// Noiser by name; q-eggroll has int8 weights and votes.
    #[arg(long, default_value = "eggroll")]
    noiser: NoiserConfig,
    /// Rank of low-rank noise.
    #[arg(long)]
    rank: Option<usize>,
    /// Rademacher noise instead of Gaussian noise.
    #[arg(long)]
    rademacher: bool,
    /// Members of a generation, even.
    #[arg(long)]
    population: Option<usize>,
    /// Give sigma in units of spreads (default 2), lr in units of sigma (0.6).
    #[arg(long)]
    relative: bool,
    /// Noise scale of the first generation.
    #[arg(long)]
    sigma: Option<f64>,
    /// Noise scale of the last generation, along half a cosine.
    #[arg(long)]
    sigma_end: Option<f64>,
    /// Learning rate of the first generation, falling to 0 along half a cosine.
    #[arg(long)]
    lr: Option<f64>,
    /// Noise scale of q-eggroll: 2^-shift.
    #[arg(long)]
    sigma_shift: Option<u32>,
    /// Optimizer, by name.
    #[arg(long)]
    optimizer: Option<OptimizerConfig>,
    /// Decoupled weight decay of AdamW.
    #[arg(long)]
    weight_decay: Option<f32>,
    /// Fitness shaping, as in centered_rank, group_standardized:4, top_pairs:16.
    #[arg(long)]
    shaping: Option<FitnessShaping>,
    /// Number of generations; each has one mini-batch.
    #[arg(long)]
    generations: Option<u64>,
    /// Images in a mini-batch.
    #[arg(long)]
    batch: Option<usize>,
    /// Largest random shift of training images, in pixels.
    #[arg(long)]
    shift: Option<u32>,
    /// Side of the squares of pixels that are averaged into one.
    #[arg(long)]
    pool: Option<usize>,
    /// Learn from auto (the loss of every image) or mean (of the batch).
    #[arg(long)]
    credit: Option<Credit>,
    /// Widths of hidden layers, by commas; of the cnn, after convolutions.
    #[arg(long, value_delimiter = ',', value_parser = at_most(WIDTH))]
    hidden: Option<Vec<usize>>,
    /// Channels of the cnn's convolutions, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = at_most(WIDTH))]
    channels: Option<Vec<usize>>,
    /// Size of the square convolution kernels.
    #[arg(long)]
    kernel: Option<usize>,
    /// Stride of the convolutions.
    #[arg(long, value_parser = at_most(WIDTH))]
    stride: Option<usize>,
    /// Seed of initial weights, noise and batches.
    #[arg(long)]
    seed: Option<u64>,
    /// Hold out the last N training images; report on them, not on the test set.
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// Generations between two lines of the table.
    #[arg(long)]
    evaluate_every: Option<u64>,
}

/// Settings of float networks alone.
const OF_FLOATS: [&str; 6] = ["rademacher", "relative", "sigma", "sigma-end", "weight-decay", "shaping"];

impl MnistChoices {
    /// Fills in the preset of the noiser.
    pub fn settings(self, given: &Given) -> Result<MnistSettings, String> {
        let model = self.model.unwrap_or_default();
        self.refuse_unused(given, model)?;
        let mut preset = self.preset.settings(model, self.noiser);
        if self.relative {
            preset = preset.in_relative_units();
        }
        let sigma = self.sigma.unwrap_or(preset.sigma);
        let generations = self.generations.unwrap_or(preset.generations);
        Ok(MnistSettings {
            model,
            noiser: preset.noiser,
            rank: self.rank.unwrap_or(preset.rank),
            rademacher: self.rademacher,
            population: self.population.unwrap_or(preset.population),
            relative: preset.relative,
            sigma,
            sigma_end: self.sigma_end.or(self.sigma).unwrap_or(preset.sigma_end),
            sigma_shift: self.sigma_shift.unwrap_or(preset.sigma_shift),
            lr: self.lr.unwrap_or(preset.lr),
            optimizer: self.optimizer.unwrap_or(preset.optimizer),
            weight_decay: self.weight_decay.unwrap_or(preset.weight_decay),
            shaping: self.shaping.or(preset.shaping),
            generations,
            batch: self.batch.unwrap_or(preset.batch),
            shift: self.shift.unwrap_or(preset.shift),
            pool: self.pool.unwrap_or(preset.pool),
            credit: self.credit.unwrap_or(preset.credit),
            hidden: self.hidden.unwrap_or(preset.hidden),
            convolutions: ConvolutionSettings {
                channels: self.channels.unwrap_or(preset.convolutions.channels),
                kernel: self.kernel.unwrap_or(preset.convolutions.kernel),
                stride: self.stride.unwrap_or(preset.convolutions.stride),
            },
            seed: self.seed.unwrap_or(preset.seed),
            validation: self.validation.unwrap_or(preset.validation),
            evaluate_every: self.evaluate_every.unwrap_or((generations / 20).max(1)),
        })
    }

    /// Refuses settings that the noiser, the optimizer or the network would ignore.
    fn refuse_unused(&self, given: &Given, model: ModelName) -> Result<(), String> {
        match &self.noiser {
            NoiserConfig::QEggroll(_) => given.refuse(&OF_FLOATS, "with q-eggroll")?,
            _ => given.refuse(&["sigma-shift"], "without q-eggroll")?,
        }
        match &self.noiser {
            NoiserConfig::Eggroll(_)
            | NoiserConfig::SignEggroll(_)
            | NoiserConfig::BaselineSubtraction(_)
            | NoiserConfig::QEggroll(_) => {}
            NoiserConfig::OpenEs(_) | NoiserConfig::Sparse(_) => given.refuse(&["rank"], "with noise of full rank")?,
            _ => given.refuse(&["rank", "rademacher"], "without noise")?,
        }
        match &self.optimizer {
            Some(OptimizerConfig::AdamW(_)) => {}
            _ => given.refuse(&["weight-decay"], "without --optimizer adam-w")?,
        }
        match (model, &self.noiser) {
            (ModelName::Mlp, _) => given.refuse(&["channels", "kernel", "stride"], "with the mlp"),
            (ModelName::Cnn, NoiserConfig::QEggroll(_)) => Err("--noiser q-eggroll cannot be used with the cnn".into()),
            (ModelName::Cnn, _) => Ok(()),
        }
    }
}
