//! Refuses settings that burn-optim's types allow but with which its optimizers panic, never end, or turn parameters into
//! NaN.

use crate::error::ConfigError;
use burn::optim::{AdafactorConfig, AdamWConfig, MuonConfig};
use eggroll_core::numbers::{self, Bound, Number};
use serde::Serialize;

/// Newton-Schulz steps beyond which nothing changes: five are usual.
const MOST_STEPS: i128 = 100;
/// Singular values of Newton-Schulz iterations that do not diverge stay far below.
const MOST_SINGULAR: f64 = 1e3;

/// The valid range of a number, by its name in Burn's optimizers and ours.
pub(super) fn bound(field: &str) -> Bound {
    // In `{"Norm": 1.0}` the field is that of the clipping.
    if field.contains("clipping") {
        return Bound::Positive;
    }
    match numbers::last_name(field) {
        "beta_1" | "beta_2" | "beta_3" | "alpha" | "momentum" => Bound::BelowOne,
        // Of a parameter whose gradient is 0, 0/ε.
        "epsilon" | "epsilon_1" | "epsilon_2" | "clip_threshold" | "max_speed" => Bound::Positive,
        "decay_rate" => Bound::Negative,
        "dampening" => Bound::Share,
        "weight_decay" | "penalty" | "lr_decay" => Bound::NotNegative,
        _ => Bound::Any,
    }
}

/// Burn's Adafactor panics of these.
pub(super) fn adafactor(config: &AdafactorConfig) -> Result<(), ConfigError> {
    let positive = ["epsilon_1", "epsilon_2", "clip_threshold"].iter().all(|name| setting(config, name) > 0.0);
    let fits = positive && setting(config, "decay_rate") < 0.0 && setting(config, "weight_decay") >= 0.0;
    let finite = numbers::check(config, |_| Bound::Any).is_ok();
    if fits && finite { Ok(()) } else { Err(ConfigError::Adafactor(config.to_string())) }
}

pub(super) fn muon(matrices: &MuonConfig, others: &AdamWConfig) -> Result<(), ConfigError> {
    // The field is private.
    let others = serde_json::to_value(others).unwrap_or_default();
    if !others["grad_clipping"].is_null() {
        return Err(ConfigError::MuonClipping);
    }
    let numbers = numbers::all(matrices);
    let steps = numbers.iter().find_map(|(field, number)| match number {
        Number::Integer(steps) if field == "ns_steps" => Some(*steps),
        _ => None,
    });
    let steps = steps.unwrap_or(0);
    if steps > MOST_STEPS {
        return Err(ConfigError::NewtonSchulz { steps, most: MOST_STEPS });
    }
    let coefficients: Vec<f64> = numbers
        .iter()
        .filter_map(|(field, number)| match number {
            Number::Float(number) if field.starts_with("ns_coefficients") => Some(*number),
            _ => None,
        })
        .collect();
    // The iteration maps singular values, which begin within (0, 1].
    let [a, b, c] = coefficients[..] else { return Ok(()) };
    let next = |s: f64| s * (a + s * s * (b + s * s * c));
    let stays = |start: u32| {
        let values = std::iter::successors(Some(f64::from(start) / 100.0), |s| Some(next(*s)));
        values.take(steps as usize + 1).all(|s| s.abs() < MOST_SINGULAR)
    };
    if (1..=100).all(stays) { Ok(()) } else { Err(ConfigError::NewtonSchulzCoefficients { coefficients, steps }) }
}

/// A number among settings whose fields are private; NaN if there is none of that name.
fn setting(config: &impl Serialize, name: &str) -> f64 {
    let number = numbers::all(config).into_iter().find(|(field, _)| field == name);
    match number {
        Some((_, Number::Float(number))) => number,
        Some((_, Number::Integer(number))) => number as f64,
        None => f64::NAN,
    }
}
