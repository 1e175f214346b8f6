//! The settings of a run, and their defaults.

use crate::cnn::ConvolutionSettings;
use burn::optim::momentum::MomentumConfig;
use clap::ValueEnum;
use eggroll::prelude::*;
use eggroll::train::{IntegerMuonConfig, MuonAdamWConfig};
use eggroll_examples::bounds::learning_rate;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Preset {
    /// The settings of `docs/benchmarks.md`.
    Quick,
    /// Five times the generations.
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

/// The settings of a run: saved with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MnistSettings {
    #[serde(default)]
    pub model: ModelName,
    /// By name: its settings are the following.
    pub noiser: NoiserConfig,
    pub rank: usize,
    #[serde(default)]
    pub rademacher: bool,
    pub population: usize,
    /// Whether noise is relative to the spread of each parameter, and the rate to the noise and the population.
    #[serde(default)]
    pub relative: bool,
    pub sigma: f64,
    pub sigma_end: f64,
    /// Of q-eggroll, in place of sigma.
    pub sigma_shift: u32,
    pub lr: f64,
    /// By name.
    pub optimizer: OptimizerConfig,
    pub weight_decay: f32,
    /// What suits the noiser, unless given.
    pub shaping: Option<FitnessShaping>,
    pub generations: u64,
    pub batch: usize,
    pub shift: u32,
    #[serde(default = "one")]
    pub pool: usize,
    pub credit: Credit,
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

impl Preset {
    /// The settings of a network and a noiser.
    pub fn settings(self, model: ModelName, noiser: NoiserConfig) -> MnistSettings {
        let integers = matches!(noiser, NoiserConfig::QEggroll(_));
        let quick = MnistSettings {
            model,
            noiser,
            rank: 1,
            rademacher: false,
            population: 1024,
            relative: false,
            sigma: 0.02,
            sigma_end: 0.02,
            sigma_shift: 3,
            lr: 0.003,
            optimizer: MuonAdamWConfig::new().into(),
            weight_decay: 0.0,
            shaping: None,
            generations: 5_000,
            batch: 128,
            shift: 1,
            pool: 1,
            credit: Credit::Auto,
            hidden: vec![128],
            convolutions: ConvolutionSettings::default(),
            seed: 0,
            validation: 0,
            evaluate_every: 0,
        };
        let quick = match model {
            ModelName::Mlp => quick,
            ModelName::Cnn => MnistSettings { hidden: Vec::new(), population: 128, generations: 32_000, ..quick },
        };
        let quick = if integers { quick.in_integers() } else { quick };
        match self {
            Self::Quick => quick,
            Self::Long => MnistSettings { generations: 5 * quick.generations, ..quick },
        }
    }
}

impl MnistSettings {
    /// What q-eggroll does best with.
    fn in_integers(self) -> Self {
        Self { optimizer: IntegerMuonConfig::new().into(), lr: 0.3, population: 128, generations: 10_000, ..self }
    }

    /// These settings with the noise scale and the learning rate that are the same for all tasks.
    pub fn in_relative_units(self) -> Self {
        Self { relative: true, sigma: 2.0, sigma_end: 2.0, lr: 0.6, ..self }
    }

    /// Refuses what the strategy does not check itself.
    pub fn validate(&self, train_images: usize, shape: [usize; 2]) -> Result<(), String> {
        let available = train_images.saturating_sub(self.validation);
        if available == 0 {
            return Err(format!("--validation {} leaves none of {train_images} training images", self.validation));
        }
        learning_rate("lr", self.lr)?;
        if self.batch == 0 || self.batch > available {
            return Err(format!("a batch of {} needs 1 to {available} training images", self.batch));
        }
        if self.shift as usize >= shape[0].min(shape[1]) {
            return Err(format!("a shift of {} pixels moves images of {shape:?} out of sight", self.shift));
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

    /// Fields that the noiser or the network has no use for.
    pub fn unused(&self) -> &'static [&'static str] {
        match (&self.noiser, self.model) {
            (NoiserConfig::QEggroll(_), _) => &["sigma", "sigma_end", "weight_decay", "convolutions"],
            (_, ModelName::Mlp) => &["sigma_shift", "convolutions"],
            (_, ModelName::Cnn) => &["sigma_shift"],
        }
    }

    /// The noiser with its settings.
    pub fn noiser(&self) -> NoiserConfig {
        let distribution = if self.rademacher { NoiseDistribution::Rademacher } else { NoiseDistribution::Normal };
        let eggroll = EggrollConfig::new().with_rank(self.rank).with_distribution(distribution);
        match self.noiser.clone() {
            NoiserConfig::Eggroll(_) => eggroll.into(),
            NoiserConfig::SignEggroll(_) => NoiserConfig::SignEggroll(eggroll),
            NoiserConfig::BaselineSubtraction(noiser) => noiser.with_eggroll(eggroll).into(),
            NoiserConfig::OpenEs(noiser) => noiser.with_distribution(distribution).into(),
            NoiserConfig::Sparse(noiser) => noiser.with_distribution(distribution).into(),
            NoiserConfig::QEggroll(noiser) => noiser.with_rank(self.rank).with_sigma_shift(self.sigma_shift).into(),
            noiser => noiser,
        }
    }

    /// The optimizer with its settings.
    pub fn optimizer(&self) -> OptimizerConfig {
        match self.optimizer.clone() {
            OptimizerConfig::Sgd(sgd) => sgd.with_momentum(Some(MomentumConfig::new().with_dampening(0.0))).into(),
            OptimizerConfig::AdamW(adam) => adam.with_weight_decay(self.weight_decay).into(),
            optimizer => optimizer,
        }
    }
}
