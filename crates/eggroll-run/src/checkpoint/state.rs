//! The part of a checkpoint that is not tensors: `strategy.json`.

use super::parameters::Parameter;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, RowCheck, RunningSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const FORMAT: u32 = 2;
pub(super) const STRATEGY: &str = "strategy.json";

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
pub(super) struct CheckpointState {
    pub format: u32,
    /// Version of the stream that the noise comes from.
    pub noise_stream: u32,
    pub generation: u64,
    pub config: EvolutionStrategyConfig,
    /// Settings that were changed while the strategy ran.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: RunningSettings,
    /// Spreads that noise is relative to, by parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads: Option<Vec<f64>>,
    /// Digest of the anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// Row checks, by parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<RowCheck>>,
    /// Digest of the training data, if the run gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub parts: BTreeMap<String, Part>,
}

/// A part of a checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Part {
    pub bytes: u64,
    /// Tensors, for parts that are modules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

impl CheckpointState {
    pub fn of(strategy: &EvolutionStrategy, data: Option<String>) -> Self {
        Self {
            format: FORMAT,
            noise_stream: strategy.config().noiser.stream_version(),
            generation: strategy.generation(),
            config: strategy.config().clone(),
            settings: strategy.settings(),
            spreads: strategy.parameters().spreads().map(<[f64]>::to_vec),
            anchor: strategy.anchor_digest().map(str::to_owned),
            rows: strategy.row_checks().map(<[RowCheck]>::to_vec),
            data,
            parts: BTreeMap::new(),
        }
    }
}

fn is_default(settings: &RunningSettings) -> bool {
    *settings == RunningSettings::default()
}
