//! Which token comes next.

use eggroll_core::rng::philox::philox4x32;
use eggroll_core::transformer::argmax;
use serde::{Deserialize, Serialize};

/// How tokens are chosen, and when a generation ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingConfig {
    /// At most this many tokens are generated; prompt and these must fit the context.
    pub max_tokens: usize,
    /// `p ∝ exp(logit/temperature)`; 0 takes the most probable token (greedy decoding).
    pub temperature: f32,
    /// Tokens below this share of the largest probability are left out (min-p, Nguyen et al., arXiv 2407.01082); 0 leaves out none.
    pub min_p: f32,
    /// Seed of the draws.
    pub seed: u64,
    /// Tokens that end a generation. They are not part of what was generated. If empty, [`Finetune`](crate::Finetune) stops at the
    /// tokenizer's end tokens ([`Tokenizer::eos`](crate::load::Tokenizer::eos)); a list given here replaces them.
    pub stop: Vec<u32>,
}

/// An invalid setting, with its value.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// Nothing would be generated.
    #[error("max_tokens is 0: generate one token at least")]
    MaxTokens,
    /// Not a number that `exp(logit/temperature)` can be computed with.
    #[error("temperature is {0}: expected 0 (greedy), or a positive number")]
    Temperature(f32),
    /// Not a share.
    #[error("min_p is {0}: expected a share from 0 to 1")]
    MinP(f32),
}

eggroll_core::debug_is_message!(SamplingError);

impl SamplingConfig {
    /// Greedy decoding of at most `max_tokens`.
    pub fn greedy(max_tokens: usize) -> Self {
        Self { max_tokens, temperature: 0.0, min_p: 0.0, seed: 0, stop: Vec::new() }
    }

    /// Sets the temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets the least share of the largest probability.
    pub fn with_min_p(mut self, min_p: f32) -> Self {
        self.min_p = min_p;
        self
    }

    /// Sets the seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the tokens that end a generation.
    pub fn with_stop(mut self, stop: impl IntoIterator<Item = u32>) -> Self {
        self.stop = stop.into_iter().collect();
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`SamplingError`] with the invalid setting.
    pub fn validate(&self) -> Result<(), SamplingError> {
        if self.max_tokens == 0 {
            return Err(SamplingError::MaxTokens);
        }
        if !self.temperature.is_finite() || self.temperature < 0.0 {
            return Err(SamplingError::Temperature(self.temperature));
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return Err(SamplingError::MinP(self.min_p));
        }
        Ok(())
    }

    /// The next token. The draw is a function of the seed, `round`, item and step: all members draw alike for the same item (common
    /// random numbers), whatever they run next to. `None` if the logits have no probabilities: one is NaN or +∞, or all are −∞.
    pub(crate) fn next(&self, logits: &[f32], round: u32, item: u32, step: u32) -> Option<u32> {
        /// Keeps these draws apart from those of noise, whose fourth word is a parameter with few bits.
        const DOMAIN: u32 = 0x7e47_0000;
        let best = argmax(logits).filter(|best| logits[*best].is_finite())?;
        if self.temperature == 0.0 {
            return Some(best as u32);
        }
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let [word, ..] = philox4x32([step, item, round, DOMAIN], key);
        let largest = f64::from(logits[best]);
        let weight = |logit: &f32| {
            let weight = ((f64::from(*logit) - largest) / f64::from(self.temperature)).exp();
            if weight < f64::from(self.min_p) { 0.0 } else { weight }
        };
        let total: f64 = logits.iter().map(weight).sum();
        let wanted = (f64::from(word) + 0.5) / 2f64.powi(32) * total;
        let mut sum = 0.0;
        let found = logits.iter().position(|logit| {
            sum += weight(logit);
            sum > wanted
        });
        Some(found.unwrap_or(best) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_without_probabilities_give_no_token() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for temperature in [0.0, 1.0] {
            let next = |logits: &[f32]| SamplingConfig::greedy(1).with_temperature(temperature).next(logits, 0, 0, 0);
            for none in [vec![], vec![nan; 3], vec![1.0, nan, 2.0], vec![-inf; 3], vec![0.0, inf], vec![nan, -inf]] {
                assert_eq!(next(&none), None, "{none:?} at {temperature}");
            }
            assert_eq!(next(&[-inf, 3.0, -inf]), Some(1));
        }
    }
}
