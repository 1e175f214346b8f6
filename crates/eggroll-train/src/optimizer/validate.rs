//! Settings that burn-optim's types allow and its optimizers do not: refused before they panic, or never come to an end.

use crate::error::ConfigError;
use burn::optim::{AdafactorConfig, MuonConfig};
use serde::Serialize;

/// Newton-Schulz steps beyond which nothing changes: five are usual.
const MOST_STEPS: f64 = 100.0;

/// Burn's Adafactor panics of these.
pub(super) fn adafactor(config: &AdafactorConfig) -> Result<(), ConfigError> {
    let positive = ["epsilon_1", "epsilon_2", "clip_threshold"].iter().all(|name| setting(config, name) > 0.0);
    let fits = positive && setting(config, "decay_rate") < 0.0 && setting(config, "weight_decay") >= 0.0;
    if fits { Ok(()) } else { Err(ConfigError::Adafactor(config.to_string())) }
}

pub(super) fn muon(config: &MuonConfig) -> Result<(), ConfigError> {
    let steps = setting(config, "ns_steps");
    if steps <= MOST_STEPS { Ok(()) } else { Err(ConfigError::NewtonSchulz { steps, most: MOST_STEPS }) }
}

/// A number among settings whose fields are private; NaN for those that JSON cannot say, as infinity.
fn setting(config: &impl Serialize, name: &str) -> f64 {
    let settings = serde_json::to_value(config).unwrap_or_default();
    settings[name].as_f64().unwrap_or(f64::NAN)
}
