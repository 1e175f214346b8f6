//! Settings of decisions.

use super::engine::ExpectedValues;
use super::error::ExpectedValuesError;
use burn::config::Config;
use burn::tensor::Device;

/// Configuration of [`ExpectedValues`].
#[derive(Config, Debug)]
pub struct ExpectedValuesConfig {
    /// Worlds that are sampled for a decision, `W`.
    pub worlds: usize,
    /// The temperature `τ` of the soft policy that other players are assumed to follow, in units of the oracle's
    /// values. Worlds are weighed by the likelihood of the moves seen so far (posterior weights). `None` weighs all
    /// worlds alike.
    pub temperature: Option<f64>,
}

impl ExpectedValuesConfig {
    /// An engine on a device.
    ///
    /// # Errors
    ///
    /// No worlds, more than `2³² − 1`, or a temperature that is not a positive number of f32.
    pub fn init(&self, device: &Device) -> Result<ExpectedValues, ExpectedValuesError> {
        let worlds = match u32::try_from(self.worlds) {
            Ok(worlds @ 1..) => worlds,
            _ => return Err(ExpectedValuesError::Worlds(self.worlds)),
        };
        match self.temperature {
            Some(found) if !(found as f32).is_normal() || found < 0.0 => Err(ExpectedValuesError::Temperature(found)),
            temperature => Ok(ExpectedValues::new(worlds, temperature, device)),
        }
    }
}
