//! What the run needs of a model in addition to its predictions.

use crate::args::{ModelSettings, Settings};
use burn::module::Module;
use burn::tensor::Device;
use eggroll::nn::integer::EggModel;
use eggroll::nn::integer::SavedState;
use eggroll::prelude::*;
use eggroll::run::diagnostics::{IntegerStatistics, changed_share, integer_statistics};
use eggroll::run::text::ByteModel;

/// A model that `char_lm` can train.
pub trait LanguageModel: ByteModel + Sync {
    /// The members' state as checkpoints save it.
    type Saved: Module + From<Self::State> + Into<Self::State>;

    /// A model with random weights.
    fn new(settings: &Settings, device: &Device) -> Self;

    /// How it is trained, on a CPU or another device.
    fn strategy(settings: &Settings, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig;

    /// Share of weights that differ, where weights move by whole steps.
    fn changed_share(before: &Self, after: &Self) -> Option<f64>;

    /// What is to be watched in its integer parameters.
    fn statistics(&self) -> Vec<IntegerStatistics>;
}

impl LanguageModel for EggModel {
    type Saved = SavedState;

    fn new(settings: &Settings, device: &Device) -> Self {
        settings.integer_model().init(device)
    }

    fn strategy(settings: &Settings, _own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig {
        settings.integer_strategy(cpu)
    }

    fn changed_share(before: &Self, after: &Self) -> Option<f64> {
        Some(changed_share(before, after))
    }

    fn statistics(&self) -> Vec<IntegerStatistics> {
        integer_statistics(self)
    }
}
