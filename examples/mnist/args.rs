//! The command line, and the strategy it stands for.

use crate::backend::Backend;
use crate::trace::TraceArgs;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use clap::{Parser, ValueEnum};
use eggroll::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Trains a multilayer perceptron on MNIST by evolution strategies, without backpropagation.
#[derive(Parser, Debug)]
pub struct Args {
    /// Folder with the four gzip files of MNIST, or of other data in that format.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/mnist"))]
    pub data: PathBuf,
    /// Folder for checkpoints, log and accuracy curve.
    #[arg(long, default_value = "runs/mnist")]
    pub out: PathBuf,
    /// Continue the run in the output folder, with its settings.
    #[arg(long)]
    pub resume: bool,
    /// Compare EGGROLL, OpenES and backpropagation on the same model and data instead.
    #[arg(long)]
    pub compare: bool,
    /// Where to compute.
    #[arg(long, value_enum, default_value_t = Backend::Flex)]
    pub backend: Backend,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub settings: Choices,
}

/// Settings as given; what is not given comes from the preset.
#[derive(clap::Args, Debug)]
pub struct Choices {
    /// Defaults of the settings below.
    #[arg(long, value_enum, default_value_t = Preset::Quick)]
    preset: Preset,
    /// How parameters are perturbed.
    #[arg(long, value_enum)]
    noiser: Option<NoiserName>,
    /// Rank of EGGROLL's noise.
    #[arg(long)]
    rank: Option<usize>,
    /// Noise of random signs instead of normals.
    #[arg(long)]
    rademacher: bool,
    /// Members of a generation, even.
    #[arg(long)]
    population: Option<usize>,
    /// Noise scale of the first generation.
    #[arg(long)]
    sigma: Option<f64>,
    /// Noise scale of the last generation, along half a cosine.
    #[arg(long)]
    sigma_end: Option<f64>,
    /// Learning rate of the first generation, falling to 0 along half a cosine.
    #[arg(long)]
    lr: Option<f64>,
    /// Optimizer of the estimated gradient.
    #[arg(long, value_enum)]
    optimizer: Option<OptimizerName>,
    /// Decoupled weight decay of AdamW.
    #[arg(long)]
    weight_decay: Option<f32>,
    /// Fitness shaping.
    #[arg(long, value_enum)]
    shaping: Option<ShapingName>,
    /// Generations, one mini-batch each.
    #[arg(long)]
    generations: Option<u64>,
    /// Images in a mini-batch.
    #[arg(long)]
    batch: Option<usize>,
    /// Pixels by which training images are moved at random, up, down, left and right.
    #[arg(long)]
    shift: Option<u32>,
    /// Project the first layer's estimate onto the span of the mini-batch's images.
    #[arg(long)]
    project: Option<bool>,
    /// Widths of the hidden layers, separated by commas.
    #[arg(long, value_delimiter = ',')]
    hidden: Option<Vec<usize>>,
    /// Seed of initial weights, noise and batches.
    #[arg(long)]
    seed: Option<u64>,
    /// Hold out the last N training images and report accuracy on them; the test set is not read.
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// Generations between two lines of the table.
    #[arg(long)]
    evaluate_every: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// Three to four minutes on two cores.
    Quick,
    /// The best accuracy, with more than five times the generations.
    Long,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum NoiserName {
    Eggroll,
    OpenEs,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum OptimizerName {
    Sgd,
    Adam,
    Adamw,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum ShapingName {
    Raw,
    ZScore,
    CenteredRank,
    PairSign,
}

/// The settings of a run: saved with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    pub noiser: NoiserName,
    pub rank: usize,
    #[serde(default)]
    pub rademacher: bool,
    pub population: usize,
    pub sigma: f64,
    pub sigma_end: f64,
    pub lr: f64,
    pub optimizer: OptimizerName,
    pub weight_decay: f32,
    pub shaping: ShapingName,
    pub generations: u64,
    pub batch: usize,
    pub shift: u32,
    pub project: bool,
    pub hidden: Vec<usize>,
    pub seed: u64,
    pub validation: usize,
    pub evaluate_every: u64,
}

impl Preset {
    fn settings(self) -> Settings {
        let quick = Settings {
            noiser: NoiserName::Eggroll,
            rank: 1,
            rademacher: false,
            population: 2048,
            sigma: 0.02,
            sigma_end: 0.02,
            lr: 0.001,
            optimizer: OptimizerName::Adam,
            weight_decay: 0.0,
            shaping: ShapingName::ZScore,
            generations: 22_000,
            batch: 32,
            shift: 1,
            project: true,
            hidden: vec![128],
            seed: 0,
            validation: 0,
            evaluate_every: 0,
        };
        match self {
            Self::Quick => quick,
            Self::Long => Settings { generations: 120_000, lr: 0.0005, sigma_end: 0.01, ..quick },
        }
    }
}

impl Choices {
    /// Fills in the preset.
    pub fn settings(self) -> Settings {
        let preset = self.preset.settings();
        let sigma = self.sigma.unwrap_or(preset.sigma);
        let generations = self.generations.unwrap_or(preset.generations);
        Settings {
            noiser: self.noiser.unwrap_or(preset.noiser),
            rank: self.rank.unwrap_or(preset.rank),
            rademacher: self.rademacher,
            population: self.population.unwrap_or(preset.population),
            sigma,
            sigma_end: self.sigma_end.or(self.sigma).unwrap_or(preset.sigma_end),
            lr: self.lr.unwrap_or(preset.lr),
            optimizer: self.optimizer.unwrap_or(preset.optimizer),
            weight_decay: self.weight_decay.unwrap_or(preset.weight_decay),
            shaping: self.shaping.unwrap_or(preset.shaping),
            generations,
            batch: self.batch.unwrap_or(preset.batch),
            shift: self.shift.unwrap_or(preset.shift),
            project: self.project.unwrap_or(preset.project),
            hidden: self.hidden.unwrap_or(preset.hidden),
            seed: self.seed.unwrap_or(preset.seed),
            validation: self.validation.unwrap_or(preset.validation),
            evaluate_every: self.evaluate_every.unwrap_or((generations / 20).max(1)),
        }
    }
}

impl Settings {
    /// Refuses what the strategy does not check itself.
    pub fn validate(&self, train_images: usize) -> Result<(), String> {
        let available = train_images.saturating_sub(self.validation);
        if self.batch == 0 || self.batch > available {
            return Err(format!("a batch of {} needs 1 to {available} training images", self.batch));
        }
        if self.shift > 27 {
            return Err(format!("a shift of {} pixels moves images out of sight", self.shift));
        }
        if self.hidden.contains(&0) {
            return Err(format!("hidden layers {:?}: a width is 0", self.hidden));
        }
        let counts = [self.generations, self.evaluate_every];
        if counts.contains(&0) {
            return Err(format!("generations and evaluate-every must be at least 1, not {counts:?}"));
        }
        Ok(())
    }

    /// The strategy's configuration.
    pub fn strategy(&self) -> EvolutionStrategyConfig {
        let distribution = if self.rademacher { NoiseDistribution::Rademacher } else { NoiseDistribution::Normal };
        let noiser: NoiserConfig = match self.noiser {
            NoiserName::Eggroll => EggrollConfig::new().with_rank(self.rank).with_distribution(distribution).into(),
            NoiserName::OpenEs => OpenEsConfig::new().with_distribution(distribution).into(),
        };
        let optimizer: OptimizerConfig = match self.optimizer {
            OptimizerName::Sgd => {
                SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_dampening(0.0))).into()
            }
            OptimizerName::Adam => AdamConfig::new().with_epsilon(1e-8).into(),
            OptimizerName::Adamw => AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(self.weight_decay).into(),
        };
        let generations = self.generations;
        EvolutionStrategyConfig::new(noiser, optimizer)
            .with_population(self.population)
            .with_sigma(SigmaSchedule::Cosine { initial: self.sigma, last: self.sigma_end, generations })
            .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(self.lr, generations as usize))
            .with_shaping(match self.shaping {
                ShapingName::Raw => FitnessShaping::Raw,
                ShapingName::ZScore => FitnessShaping::ZScore,
                ShapingName::CenteredRank => FitnessShaping::CenteredRank,
                ShapingName::PairSign => FitnessShaping::PairSign,
            })
            .with_seed(self.seed)
            .with_project_shared_inputs(self.project)
    }
}
