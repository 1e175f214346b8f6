//! The settings of a run, what they are unless they are given, and the strategy they stand for.

use crate::cnn::ConvolutionSettings;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use clap::ValueEnum;
use eggroll::core::QEggrollConfig;
use eggroll::prelude::*;
use serde::{Deserialize, Serialize};

/// Members that q-eggroll computes at a time on one core: their images are in its cache.
const INTEGER_CHUNK: usize = 32;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Preset {
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

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
pub enum ProjectName {
    Off,
    /// The first layer's, onto the images.
    Shared,
    /// All layers', onto what the unperturbed network gives them.
    Unperturbed,
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
    pub project: ProjectName,
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
        Self { sigma_shift: 3, alpha: 3.0, decay: 10_000 }
    }
}

impl Preset {
    /// The settings of a network and a noiser.
    pub fn settings(self, model: ModelName, noiser: NoiserName) -> Settings {
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
            project: ProjectName::Shared,
            hidden: vec![128],
            convolutions: ConvolutionSettings::default(),
            seed: 0,
            validation: 0,
            evaluate_every: 0,
        };
        let quick = match model {
            ModelName::Mlp => quick,
            ModelName::Cnn => Settings { hidden: Vec::new(), project: ProjectName::Unperturbed, ..quick },
        };
        match (noiser, self) {
            (NoiserName::QEggroll, Self::Quick) => quick.in_integers(10_000),
            (NoiserName::QEggroll, Self::Long) => quick.in_integers(50_000),
            (_, Self::Quick) => quick,
            (_, Self::Long) => Settings { generations: 120_000, lr: 0.0005, sigma_end: 0.01, ..quick },
        }
    }
}

impl Settings {
    /// What q-eggroll does best with: smaller inputs, larger batches, votes that become fewer to the end.
    fn in_integers(self, generations: u64) -> Self {
        Self { population: 1024, batch: 128, shift: 0, pool: 2, hidden: vec![64], generations, ..self }
    }

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
            .with_input_projection(match self.project {
                ProjectName::Off => InputProjection::Off,
                ProjectName::Shared => InputProjection::Shared,
                ProjectName::Unperturbed => InputProjection::Unperturbed,
            })
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
