//! A configuration as text: missing fields have the values of [`EvolutionStrategyConfig::new`], which depend on the noiser.

use super::{Credit, EvolutionStrategyConfig, GradientScale, NoiseScale, RateScale, SigmaSchedule};
use crate::fitness::FitnessShaping;
use crate::optimizer::OptimizerConfig;
use crate::transform::CustomTransform;
use burn::lr_scheduler::LrSchedulerConfig;
use eggroll_core::{NoiseSourceConfig, NoiserConfig, Role};
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "EvolutionStrategyConfig")]
struct PartialConfig {
    noiser: NoiserConfig,
    optimizer: OptimizerConfig,
    population_size: Option<usize>,
    sigma: Option<SigmaSchedule>,
    noise_scale: Option<NoiseScale>,
    scales: Option<Vec<(String, f64)>>,
    learning_rate: Option<LrSchedulerConfig>,
    rate_scale: Option<RateScale>,
    shaping: Option<FitnessShaping>,
    gradient_scale: Option<GradientScale>,
    #[serde(default, deserialize_with = "or_null")]
    clip_norm: Option<Option<f64>>,
    transforms: Option<Vec<CustomTransform>>,
    anchor_decay: Option<f64>,
    master_weights: Option<bool>,
    seed: Option<u64>,
    noise_reuse: Option<u64>,
    unroll_horizon: Option<u64>,
    noise_source: Option<NoiseSourceConfig>,
    roles: Option<Vec<(String, Role)>>,
    frozen: Option<Vec<String>>,
    chunk_size: Option<usize>,
    memory_limit: Option<u64>,
    credit: Option<Credit>,
}

/// A value or `null`, as opposed to nothing.
fn or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for EvolutionStrategyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartialConfig::deserialize(deserializer).map(Self::from)
    }
}

impl From<PartialConfig> for EvolutionStrategyConfig {
    fn from(given: PartialConfig) -> Self {
        let default = Self::new(given.noiser, given.optimizer);
        Self {
            population_size: given.population_size.unwrap_or(default.population_size),
            sigma: given.sigma.unwrap_or(default.sigma),
            noise_scale: given.noise_scale.unwrap_or(default.noise_scale),
            scales: given.scales.unwrap_or(default.scales),
            learning_rate: given.learning_rate.unwrap_or(default.learning_rate),
            rate_scale: given.rate_scale.unwrap_or(default.rate_scale),
            shaping: given.shaping.unwrap_or(default.shaping),
            gradient_scale: given.gradient_scale.unwrap_or(default.gradient_scale),
            clip_norm: given.clip_norm.unwrap_or(default.clip_norm),
            transforms: given.transforms.unwrap_or(default.transforms),
            anchor_decay: given.anchor_decay.or(default.anchor_decay),
            master_weights: given.master_weights.unwrap_or(default.master_weights),
            seed: given.seed.unwrap_or(default.seed),
            noise_reuse: given.noise_reuse.unwrap_or(default.noise_reuse),
            unroll_horizon: given.unroll_horizon.or(default.unroll_horizon),
            noise_source: given.noise_source.unwrap_or(default.noise_source),
            roles: given.roles.unwrap_or(default.roles),
            frozen: given.frozen.unwrap_or(default.frozen),
            chunk_size: given.chunk_size.or(default.chunk_size),
            memory_limit: given.memory_limit.or(default.memory_limit),
            credit: given.credit.unwrap_or(default.credit),
            noiser: default.noiser,
            optimizer: default.optimizer,
        }
    }
}
