//! One file that describes a run.

use crate::difference::difference;
use crate::error::{Error, RunError};
use burn::config::Config;
use eggroll_train::EvolutionStrategyConfig;
use eggroll_train::settings::filled;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The file of a run's configuration.
pub(super) const FILE: &str = "training.json";

/// The full description of a run, apart from the program. The learner saves it as `training.json` next to the checkpoints; a run
/// from that file alone gives the same bits.
///
/// The program's own settings (the network's size, the data) belong in `settings`, any value that serializes. The seed of initial
/// weights and data can be the strategy's [`seed`](Self::seed).
///
/// # Example
///
/// ```
/// use burn::config::Config;
/// use burn::optim::AdamConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_run::{EarlyStoppingConfig, EsTrainingConfig, MetricTarget};
/// use eggroll_train::EvolutionStrategyConfig;
///
/// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_seed(7);
/// let accuracy = MetricTarget::highest("Accuracy");
/// let config = EsTrainingConfig::new(strategy, 5000)
///     .with_validate_every(200)
///     .with_keep_best(Some(accuracy.clone()))
///     .with_early_stopping(Some(EarlyStoppingConfig::new(accuracy, 5)))
///     .with_settings(serde_json::json!({ "hidden": 128 }));
/// let again = EsTrainingConfig::load_binary(config.to_string().as_bytes()).unwrap();
/// assert_eq!((again.seed(), again.validate_every), (7, 200));
/// ```
#[derive(Config, Debug)]
pub struct EsTrainingConfig {
    /// The strategy, with the seed of all noise.
    pub strategy: EvolutionStrategyConfig,
    /// Generations of the run.
    pub generations: u64,
    /// Generations between two validations of the mean parameters: one of burn-train's epochs, at whose end early stopping and
    /// checkpointing strategies decide.
    #[config(default = 100)]
    pub validate_every: u64,
    /// Generations between two reports of metrics; each report costs one more read from the device.
    #[config(default = 1)]
    pub report_every: u64,
    /// Generations between two checkpoints to continue from; 0 for one at the end only, or none if the run
    /// [continues from its replay log](super::EsTask::continues_from_replay_log).
    #[config(default = 1000)]
    pub checkpoint_every: u64,
    /// How many of these checkpoints are kept.
    #[config(default = 2)]
    pub keep_checkpoints: usize,
    /// Whether all fitness is logged next to the checkpoints: [`replay`](crate::replay()) can then rebuild the model of any generation
    /// from the first model. If weights learn by part, only [`replay_evaluated`](crate::replay_evaluated) can.
    #[config(default = false)]
    pub replay_log: bool,
    /// The metric whose best epoch is kept as a separate checkpoint, in the folder `kept`.
    pub keep_best: Option<MetricTarget>,
    /// When to stop early.
    pub early_stopping: Option<EarlyStoppingConfig>,
    /// Whether every validation comes with a diagnosis of model, σ and estimate: two more estimates and a read of all parameters.
    #[config(default = false)]
    pub diagnostics: bool,
    /// Digest of the training data ([`data_digest`](crate::data_digest)): a run does not continue with other data, and replicas with other data
    /// are refused.
    pub data: Option<String>,
    /// Generations in a row without one finite fitness value after which the run ends with an error; 0 for any number.
    #[config(default = 10)]
    pub patience: u64,
    /// The program's own settings.
    #[config(default = "serde_json::Value::Null")]
    pub settings: Value,
}

/// A metric by name.
#[derive(Config, Debug)]
pub struct MetricTarget {
    /// The metric's name.
    pub name: String,
    /// Whether it is one of the validation's metrics; otherwise it is one of training's.
    #[config(default = true)]
    pub validation: bool,
    /// Whether the highest value is the best; otherwise the lowest is.
    #[config(default = true)]
    pub highest: bool,
}

impl MetricTarget {
    /// The metric of the validation with this name, whose highest value is the best.
    pub fn highest(name: impl Into<String>) -> Self {
        Self::new(name.into())
    }

    /// The metric of the validation with this name, whose lowest value is the best.
    pub fn lowest(name: impl Into<String>) -> Self {
        Self::new(name.into()).with_highest(false)
    }
}

/// Stops a run that no longer improves.
#[derive(Config, Debug)]
pub struct EarlyStoppingConfig {
    /// The metric to improve.
    pub metric: MetricTarget,
    /// Epochs without improvement after which the run stops.
    pub patience: usize,
    /// Epochs in which it does not stop.
    pub warmup: Option<usize>,
}

impl EsTrainingConfig {
    /// The seed of all noise, for other random parts of a run too.
    pub fn seed(&self) -> u64 {
        self.strategy.seed
    }

    /// The configuration that a run has saved in its folder.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn of_run(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read(folder.as_ref().join(FILE))
    }

    /// The configuration in a JSON file. It needs `strategy` and `generations`; other missing fields have the values of
    /// [`new`](Self::new), whereas Burn's [`load`](Config::load) requires every field.
    ///
    /// # Errors
    ///
    /// [`RunError::Configuration`] if there is none, or none that this version reads.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refuse = |reason: String| RunError::Configuration { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        // Editors write byte order marks.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Ok(Self::parse(text).map_err(|error| refuse(error.to_string()))?)
    }

    fn parse(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Required {
            strategy: EvolutionStrategyConfig,
            generations: u64,
        }
        let Required { strategy, generations } = serde_json::from_str(text)?;
        filled(&Self::new(strategy, generations), serde_json::from_str(text)?)
    }

    /// The program's own settings.
    ///
    /// # Errors
    ///
    /// [`RunError::Settings`] if they are of another type.
    pub fn read_settings<S: DeserializeOwned>(&self) -> Result<S, Error> {
        serde_json::from_value(self.settings.clone()).map_err(|error| RunError::Settings(error.to_string()).into())
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        for (name, value) in [("validate_every", self.validate_every), ("report_every", self.report_every)] {
            if value == 0 {
                return Err(RunError::Interval(name).into());
            }
        }
        if self.keep_checkpoints == 0 {
            return Err(RunError::KeepNone.into());
        }
        Ok(())
    }

    /// The first field in which the configuration of the run in the folder differs from this one, with both values. Fields that affect no
    /// generation may change: the number of generations, the intervals of reports and checkpoints, when it stops early, the memory of chunks.
    pub(super) fn difference(&self, saved: &Self) -> Option<(String, String, String)> {
        let fixed = |config: &Self| Self {
            strategy: config.strategy.of_updates(),
            generations: 0,
            report_every: 1,
            checkpoint_every: 0,
            keep_checkpoints: 0,
            patience: 0,
            early_stopping: None,
            // A run that began without a digest may get one.
            data: config.data.clone().filter(|_| saved.data.is_some()),
            ..config.clone()
        };
        difference(&fixed(saved), &fixed(self))
    }

    /// What has changed since the run in the folder began, or was last continued.
    pub(super) fn changes(&self, saved: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let (mut saved, own) = [saved, self].map(|config| serde_json::to_value(config).unwrap_or_default()).into();
        while let Some((field, found, expected)) = difference(&saved, &own) {
            changes.push(format!("{field} is {expected} from now on, and was {found}"));
            let path = format!("/{}", field.replace('.', "/"));
            let value = own.pointer(&path).cloned().unwrap_or_default();
            match saved.pointer_mut(&path) {
                Some(place) => *place = value,
                None => break,
            }
        }
        changes
    }

    /// The epoch that a generation belongs to, from 1.
    pub(super) fn epoch(&self, generation: u64) -> u64 {
        generation / self.validate_every + 1
    }

    /// The first generation of an epoch.
    pub(super) fn start(&self, epoch: u64) -> u64 {
        (epoch - 1) * self.validate_every
    }

    /// The generations of an epoch: less than others in the last one, if the run ends inside it.
    pub(super) fn length(&self, epoch: u64) -> u64 {
        self.validate_every.min(self.generations.saturating_sub(self.start(epoch)))
    }

    /// Whether a generation, from 0, is the last one of its epoch.
    pub(super) fn ends_epoch(&self, generation: u64) -> bool {
        generation + 1 == self.start(self.epoch(generation)) + self.length(self.epoch(generation))
    }

    /// Whether metrics of a generation are reported: always at the end of an epoch.
    pub(super) fn reports(&self, generation: u64) -> bool {
        generation.is_multiple_of(self.report_every) || self.ends_epoch(generation)
    }
}
