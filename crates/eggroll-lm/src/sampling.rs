//! The choice of the next token.

use eggroll_core::rng::philox::philox4x32;
use eggroll_core::transformer::argmax;
use serde::{Deserialize, Serialize};

/// How tokens are chosen, and when a generation ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingConfig {
    /// Largest number of generated tokens; they must fit the context together with the prompt.
    pub max_tokens: usize,
    /// `p ∝ exp(logit/temperature)`; 0 takes the most probable token (greedy decoding).
    pub temperature: f32,
    /// Tokens below this share of the largest probability are left out (min-p, Nguyen et al., arXiv 2407.01082); 0 leaves out none.
    pub min_p: f32,
    /// Seed of the draws.
    pub seed: u64,
    /// Tokens that end a generation; they are not part of the result. If empty, [`Finetune`](crate::Finetune) stops at the
    /// tokenizer's end tokens ([`Tokenizer::eos`](crate::load::Tokenizer::eos)); a list given here replaces them.
    pub stop: Vec<u32>,
    /// Answers to each prompt for a reward, drawn independently.
    pub answers: usize,
    /// The `k` of best-of-k: the score of a prompt is the best score among `k` of its answers, averaged over all choices of `k`. With 1 it
    /// is the mean of all [answers](Self::answers), with their number the best. For rewards 0 and 1 this is pass@k (Chen et al. 2021, arXiv
    /// 2107.03374, eq. 1).
    pub best_of: usize,
}

/// An invalid setting, with its value.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// Nothing would be generated.
    #[error("max_tokens is 0: generate one token at least")]
    MaxTokens,
    /// A temperature for which `exp(logit/temperature)` cannot be computed.
    #[error("temperature is {0}: expected 0 (greedy), or a positive number")]
    Temperature(f32),
    /// Not a share.
    #[error("min_p is {0}: expected a share from 0 to 1")]
    MinP(f32),
    /// More than the number of answers, or 0.
    #[error("best_of is {best_of} of {answers} answers: expected a number from 1 to {answers}")]
    BestOf {
        /// The best of how many.
        best_of: usize,
        /// Answers to a prompt.
        answers: usize,
    },
    /// Answers that are all the same.
    #[error("{0} answers at temperature 0 are all the same: give a temperature, or 1 answer")]
    SameAnswers(usize),
}

eggroll_core::debug_is_message!(SamplingError);

impl SamplingConfig {
    /// Greedy decoding of at most `max_tokens`.
    pub fn greedy(max_tokens: usize) -> Self {
        Self { max_tokens, temperature: 0.0, min_p: 0.0, seed: 0, stop: Vec::new(), answers: 1, best_of: 1 }
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

    /// Sets the number of answers to each prompt for a reward, and among how many the best counts: see
    /// [`best_of`](Self::best_of).
    pub fn with_answers(mut self, answers: usize, best_of: usize) -> Self {
        (self.answers, self.best_of) = (answers, best_of);
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
        let (answers, best_of) = (self.answers, self.best_of);
        if !(1..=answers).contains(&best_of) {
            return Err(SamplingError::BestOf { best_of, answers });
        }
        if answers > 1 && self.temperature == 0.0 {
            return Err(SamplingError::SameAnswers(answers));
        }
        Ok(())
    }

    /// The score of a prompt from the scores of its answers: `Σ r₍ᵢ₎·C(i − 1, k − 1)/C(n, k)` over the n scores in rising order, with `k` =
    /// [`best_of`](Self::best_of). NaN if any score is NaN.
    pub(crate) fn prompt_score(&self, scores: &[f32]) -> f32 {
        let mut sorted = scores.to_vec();
        sorted.sort_by(f32::total_cmp);
        let k = self.best_of;
        let mut weight = k as f64 / scores.len() as f64;
        let mut sum = 0.0;
        for (place, score) in sorted.iter().enumerate().rev() {
            sum += weight * f64::from(*score);
            // From C(i − 1, k − 1) to C(i − 2, k − 1).
            weight *= (place + 1).saturating_sub(k) as f64 / place.max(1) as f64;
        }
        if scores.iter().any(|score| score.is_nan()) { f32::NAN } else { sum as f32 }
    }

    /// The settings of a later turn of an episode, with other draws.
    pub(crate) fn of_turn(&self, turn: u64) -> Self {
        self.clone().with_seed(self.seed ^ turn.rotate_right(8))
    }

    /// The next token. The draw is a function of the seed, `round`, item and step only. All members have the same draws for the
    /// same item (common random numbers). `None` if the logits have no probabilities: one is NaN or +∞, or all are −∞.
    pub(crate) fn next(&self, logits: &[f32], round: u32, item: u32, step: u32) -> Option<u32> {
        /// Separates these draws from draws of noise, whose fourth word is a parameter with few bits.
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

    /// Over all choices of k answers.
    #[test]
    fn the_best_of_some_answers() {
        let scores = [0.5, -1.0, 2.0, 0.25, 2.0f32];
        for k in 1..=5 {
            let chosen = (0u32..32).filter(|choice| choice.count_ones() == k as u32);
            let best = chosen.map(|choice| {
                let some = scores.iter().enumerate().filter(|(index, _)| choice >> index & 1 == 1);
                some.map(|(_, score)| f64::from(*score)).fold(f64::NEG_INFINITY, f64::max)
            });
            let best: Vec<f64> = best.collect();
            let expected = best.iter().sum::<f64>() / best.len() as f64;
            let found = SamplingConfig::greedy(1).with_answers(5, k).prompt_score(&scores);
            assert!((f64::from(found) - expected).abs() < 1e-6, "best of {k}: {found}, {expected}");
        }
        // pass@2 of 2 right answers among 4: 1 − C(2, 2)/C(4, 2).
        let found = SamplingConfig::greedy(1).with_answers(4, 2).prompt_score(&[0.0, 1.0, 0.0, 1.0]);
        assert!((found - 5.0 / 6.0).abs() < 1e-6);
        assert_eq!(SamplingConfig::greedy(1).prompt_score(&[0.1]), 0.1);
        assert!(SamplingConfig::greedy(1).with_answers(2, 2).prompt_score(&[f32::NAN, 1.0]).is_nan());
    }

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
