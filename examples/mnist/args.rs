//! The command line, and the strategy it stands for.

use crate::backend::Backend;
use crate::cnn::ConvolutionSettings;
use crate::trace::TraceArgs;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use clap::{Parser, ValueEnum};
use eggroll::core::QEggrollConfig;
use eggroll::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Members that q-eggroll computes at a time on one core: their images are in its cache.
const INTEGER_CHUNK: usize = 32;

/// Trains a multilayer perceptron or a convolutional network on MNIST by evolution strategies, without backpropagation.
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
    /// Show Burn's dashboard, if this is a terminal.
    #[arg(long)]
    pub dashboard: bool,
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
    /// The network.
    #[arg(long, value_enum)]
    model: Option<ModelName>,
    /// How parameters are perturbed.
    #[arg(long, value_enum)]
    noiser: Option<NoiserName>,
    /// Rank of EGGROLL's and Q-EGGROLL's noise.
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
    /// Noise scale of q-eggroll: 2^-shift.
    #[arg(long)]
    sigma_shift: Option<u32>,
    /// Share of weights that random fitness would move in q-eggroll: above 1 falling from all to 2^-alpha over --decay generations
    /// and on.
    #[arg(long)]
    alpha: Option<f64>,
    /// Generations of that schedule.
    #[arg(long)]
    decay: Option<u64>,
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
    /// Average squares of this many by this many pixels into one.
    #[arg(long)]
    pool: Option<usize>,
    /// Project the first layer's estimate onto the span of the mini-batch's images.
    #[arg(long)]
    project: Option<bool>,
    /// Widths of the hidden layers, separated by commas; of the cnn, those behind its convolutions.
    #[arg(long, value_delimiter = ',')]
    hidden: Option<Vec<usize>>,
    /// Channels of the cnn's convolutions, separated by commas.
    #[arg(long, value_delimiter = ',')]
    channels: Option<Vec<usize>>,
    /// Side of the convolutions' square kernels.
    #[arg(long)]
    kernel: Option<usize>,
    /// Pixels between two positions of a convolution.
    #[arg(long)]
    stride: Option<usize>,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
pub enum ModelName {
    /// Linear layers on all pixels.
    #[default]
    Mlp,
    /// Convolutions, then linear layers.
    Cnn,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum NoiserName {
    Eggroll,
    OpenEs,
    /// Int8 weights and activations, integer fitness, updates by vote: no floating point in training.
    QEggroll,
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
    #[serde(default)]
    pub model: ModelName,
    pub noiser: NoiserName,
    pub rank: usize,
    #[serde(default)]
    pub rademacher: bool,
    pub population: usize,
    pub sigma: f64,
    pub sigma_end: f64,
    #[serde(default)]
    pub votes: VoteSettings,
    pub lr: f64,
    pub optimizer: OptimizerName,
    pub weight_decay: f32,
    pub shaping: ShapingName,
    pub generations: u64,
    pub batch: usize,
    pub shift: u32,
    #[serde(default = "one")]
    pub pool: usize,
    pub project: bool,
    pub hidden: Vec<usize>,
    #[serde(default)]
    pub convolutions: ConvolutionSettings,
    pub seed: u64,
    pub validation: usize,
    pub evaluate_every: u64,
}

/// Runs of earlier versions saw every pixel.
fn one() -> usize {
    1
}

/// The settings of q-eggroll alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VoteSettings {
    pub sigma_shift: u32,
    pub alpha: f64,
    pub decay: u64,
}

impl Default for VoteSettings {
    fn default() -> Self {
        Self { sigma_shift: 3, alpha: 6.0, decay: 10_000 }
    }
}

impl Preset {
    fn settings(self, model: ModelName, noiser: NoiserName) -> Settings {
        let quick = Settings {
            model,
            noiser,
            rank: 1,
            rademacher: false,
            population: 2048,
            sigma: 0.02,
            sigma_end: 0.02,
            votes: VoteSettings::default(),
            lr: 0.001,
            optimizer: OptimizerName::Adam,
            weight_decay: 0.0,
            shaping: ShapingName::ZScore,
            generations: 22_000,
            batch: 32,
            shift: 1,
            pool: 1,
            project: true,
            hidden: vec![128],
            convolutions: ConvolutionSettings::default(),
            seed: 0,
            validation: 0,
            evaluate_every: 0,
        };
        let quick = match model {
            ModelName::Mlp => quick,
            // A convolution's patches outnumber its weights: there is no span to project on.
            ModelName::Cnn => Settings { hidden: Vec::new(), project: false, ..quick },
        };
        match (noiser, self) {
            (NoiserName::QEggroll, Self::Quick) => Settings { generations: 10_000, ..quick },
            (NoiserName::QEggroll, Self::Long) => Settings { generations: 50_000, ..quick },
            (_, Self::Quick) => quick,
            (_, Self::Long) => Settings { generations: 120_000, lr: 0.0005, sigma_end: 0.01, ..quick },
        }
    }
}

impl Choices {
    /// Fills in the preset of the noiser.
    pub fn settings(self) -> Result<Settings, String> {
        let (model, noiser) = (self.model.unwrap_or_default(), self.noiser.unwrap_or(NoiserName::Eggroll));
        self.refuse_foreign(noiser)?;
        self.refuse_foreign_to_model(model, noiser)?;
        let preset = self.preset.settings(model, noiser);
        let sigma = self.sigma.unwrap_or(preset.sigma);
        let generations = self.generations.unwrap_or(preset.generations);
        Ok(Settings {
            model,
            noiser,
            rank: self.rank.unwrap_or(preset.rank),
            rademacher: self.rademacher,
            population: self.population.unwrap_or(preset.population),
            sigma,
            sigma_end: self.sigma_end.or(self.sigma).unwrap_or(preset.sigma_end),
            votes: VoteSettings {
                sigma_shift: self.sigma_shift.unwrap_or(preset.votes.sigma_shift),
                alpha: self.alpha.unwrap_or(preset.votes.alpha),
                decay: self.decay.unwrap_or(preset.votes.decay),
            },
            lr: self.lr.unwrap_or(preset.lr),
            optimizer: self.optimizer.unwrap_or(preset.optimizer),
            weight_decay: self.weight_decay.unwrap_or(preset.weight_decay),
            shaping: self.shaping.unwrap_or(preset.shaping),
            generations,
            batch: self.batch.unwrap_or(preset.batch),
            shift: self.shift.unwrap_or(preset.shift),
            pool: self.pool.unwrap_or(preset.pool),
            project: self.project.unwrap_or(preset.project),
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

    /// Refuses settings that have no part in training with a noiser.
    fn refuse_foreign(&self, noiser: NoiserName) -> Result<(), String> {
        let of_floats = [
            ("rademacher", self.rademacher),
            ("sigma", self.sigma.is_some()),
            ("sigma-end", self.sigma_end.is_some()),
            ("lr", self.lr.is_some()),
            ("optimizer", self.optimizer.is_some()),
            ("weight-decay", self.weight_decay.is_some()),
            ("shaping", self.shaping.is_some()),
            ("project", self.project.is_some()),
        ];
        let of_integers = [
            ("sigma-shift", self.sigma_shift.is_some()),
            ("alpha", self.alpha.is_some()),
            ("decay", self.decay.is_some()),
        ];
        let (foreign, with) = match noiser {
            NoiserName::QEggroll => (&of_floats[..], "with q-eggroll"),
            NoiserName::Eggroll | NoiserName::OpenEs => (&of_integers[..], "without q-eggroll"),
        };
        refuse(foreign, with)
    }

    /// Refuses settings that have no part in a network.
    fn refuse_foreign_to_model(&self, model: ModelName, noiser: NoiserName) -> Result<(), String> {
        let of_mlp =
            [("project", self.project.is_some()), ("noiser q-eggroll", matches!(noiser, NoiserName::QEggroll))];
        let of_cnn = [
            ("channels", self.channels.is_some()),
            ("kernel", self.kernel.is_some()),
            ("stride", self.stride.is_some()),
        ];
        match model {
            ModelName::Mlp => refuse(&of_cnn, "the mlp"),
            ModelName::Cnn => refuse(&of_mlp, "the cnn"),
        }
    }
}

/// An error that names the first foreign setting that is given.
fn refuse(foreign: &[(&str, bool)], with: &str) -> Result<(), String> {
    match foreign.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(format!("--{name} has no part in training {with}")),
        None => Ok(()),
    }
}

impl Settings {
    /// Refuses what the strategy does not check itself.
    pub fn validate(&self, train_images: usize, shape: [usize; 2]) -> Result<(), String> {
        let available = train_images.saturating_sub(self.validation);
        if self.batch == 0 || self.batch > available {
            return Err(format!("a batch of {} needs 1 to {available} training images", self.batch));
        }
        if self.shift > 27 {
            return Err(format!("a shift of {} pixels moves images out of sight", self.shift));
        }
        if self.pool == 0 || shape.iter().any(|length| !length.is_multiple_of(self.pool)) {
            return Err(format!("squares of {} pixels do not divide images of {shape:?}", self.pool));
        }
        if self.hidden.contains(&0) {
            return Err(format!("hidden layers {:?}: a width is 0", self.hidden));
        }
        if self.model == ModelName::Cnn {
            self.convolutions.shapes(shape.map(|length| length / self.pool))?;
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
        match self.noiser {
            NoiserName::Eggroll => {
                self.float_strategy(EggrollConfig::new().with_rank(self.rank).with_distribution(distribution))
            }
            NoiserName::OpenEs => self.float_strategy(OpenEsConfig::new().with_distribution(distribution)),
            NoiserName::QEggroll => self.integer_strategy(),
        }
    }

    fn float_strategy(&self, noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
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

    fn integer_strategy(&self) -> EvolutionStrategyConfig {
        let VoteSettings { sigma_shift, alpha, decay } = self.votes;
        let noiser =
            QEggrollConfig::new().with_rank(self.rank).with_sigma_shift(sigma_shift).with_threshold(alpha, decay);
        EvolutionStrategyConfig::integer(noiser)
            .with_population(self.population)
            .with_chunk(INTEGER_CHUNK)
            .with_seed(self.seed)
    }
}
