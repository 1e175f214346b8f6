//! Q-EGGROLL: EGGROLL by integers only (Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652).

use super::{IntegerRule, Noiser, NoiserError, NoiserProperties};
use crate::arithmetic::integer::{VoteLevels, Votes};
use crate::noise::role::Role;
use serde::{Deserialize, Serialize};

/// Settings of Q-EGGROLL, for models of integer parameters: int8 saturated at ±127, 16 is 1.0.
///
/// - A matrix is perturbed by `⌊s·B·Aᵀ / 2^(4 + sigma_shift)⌋`, a vector by the product of two draws in the same way, the draws
///   being `trunc(16·N(0, 1))` ([`crate::rng::integer`], or runs of a table). The operations of the
///   [transformer](crate::ops::integer::Rounding::Nearest) round to nearest instead.
/// - The fitness of a pair is `sign(f₊ − f₋)`, or a vote in more [levels](VoteLevels).
/// - A weight moves by one in the direction of its vote `Z = Σ_q f_q·B_q·A_qᵀ` if
///   `|Z|·16 ≥ thr·⌊√(r·Σ f_q²)⌋·256`, with the threshold of the generation ([`crate::arithmetic::integer::threshold`]). `Σ f_q²` is the number of pairs
///   that are not tied, unless there are levels; a vector has `r = 1`.
///
/// Float parameters stay as they are.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiserConfig, QEggrollConfig};
///
/// let config = NoiserConfig::from(QEggrollConfig::new().with_sigma_shift(3));
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(json, r#"{"name":"q_eggroll","rank":1,"sigma_shift":3,"alpha":4.0,"decay":1000,"votes":"values","levels":"sign","reference_limit":false}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QEggrollConfig {
    /// Columns `r` of the factors.
    pub rank: usize,
    /// `σ = 2^−sigma_shift`, times `√r` for a matrix: factors of more columns are not scaled down.
    pub sigma_shift: u32,
    /// Share of weights that a generation of random fitness would move. Above 1: all weights at first, a share of
    /// `2^−alpha` after `decay` generations, and fewer later. At most 1: always that share.
    pub alpha: f64,
    /// Generations of the schedule.
    pub decay: u64,
    /// The noise that counts in a vote.
    pub votes: Votes,
    /// Resolution of a pair's vote.
    pub levels: VoteLevels,
    /// The reference's limit of votes, `⌊√pairs⌋` for every rank, tied pairs included.
    pub reference_limit: bool,
}

impl Default for QEggrollConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl QEggrollConfig {
    /// The reference's settings: rank 1, sigma shift 4, alpha 4, decay 1,000, votes of values, by sign. The limit of votes is
    /// [not the reference's](Self::with_reference_limit) if pairs are tied.
    pub fn new() -> Self {
        Self {
            rank: 1,
            sigma_shift: 4,
            alpha: 4.0,
            decay: 1000,
            votes: Votes::Values,
            levels: VoteLevels::Sign,
            reference_limit: false,
        }
    }

    /// Sets the columns of the factors.
    pub fn with_rank(mut self, rank: usize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the noise scale `2^−sigma_shift`.
    pub fn with_sigma_shift(mut self, sigma_shift: u32) -> Self {
        self.sigma_shift = sigma_shift;
        self
    }

    /// Sets the threshold schedule.
    pub fn with_threshold(mut self, alpha: f64, decay: u64) -> Self {
        (self.alpha, self.decay) = (alpha, decay);
        self
    }

    /// Sets the noise that counts in a vote.
    pub fn with_votes(mut self, votes: Votes) -> Self {
        self.votes = votes;
        self
    }

    /// Sets the resolution of a pair's vote.
    pub fn with_levels(mut self, levels: VoteLevels) -> Self {
        self.levels = levels;
        self
    }

    /// Sets whether the limit of votes is the reference's, to reproduce its runs: `⌊√pairs⌋` in place of `⌊√(r·Σ f_q²)⌋`, tied pairs included; with
    /// levels, `⌊√(Σ f_q²)⌋`. Random fitness then moves more weights than `alpha` says if the rank is above 1, and fewer if pairs are tied. A share
    /// of 6.25 % becomes 35 % at rank 4, and 0.8 % if half of the pairs are tied.
    pub fn with_reference_limit(mut self, reference: bool) -> Self {
        self.reference_limit = reference;
        self
    }

    /// Builds the noiser.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] with the value that cannot be used.
    pub fn init(&self) -> Result<impl Noiser + use<>, NoiserError> {
        Ok(QEggroll(self.rule()?))
    }

    /// The rule for integer parameters, for other noisers to reuse.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] with the value that cannot be used.
    pub fn rule(&self) -> Result<IntegerRule, NoiserError> {
        let schedule = (self.alpha, self.decay);
        IntegerRule::new(self.rank, self.sigma_shift, schedule, self.votes, (self.levels, self.reference_limit))
    }
}

#[derive(Debug)]
struct QEggroll(IntegerRule);

impl Noiser for QEggroll {
    fn role(&self, _shape: &[usize]) -> Role {
        Role::Frozen
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { integer: Some(self.0.clone()), ..NoiserProperties::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be() {
        let error = |config: QEggrollConfig| config.init().map(drop).unwrap_err().to_string();
        assert!(error(QEggrollConfig::new().with_rank(0)).contains('0'));
        assert!(error(QEggrollConfig::new().with_sigma_shift(25)).contains("25"));
        assert!(error(QEggrollConfig::new().with_threshold(-1.5, 10)).contains("-1.5"));
        assert!(error(QEggrollConfig::new().with_threshold(f64::NAN, 10)).contains("NaN"));
        assert!(error(QEggrollConfig::new().with_threshold(2.0, 0)).contains('0'));
    }
}
