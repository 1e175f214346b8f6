//! EGGROLL: low-rank noise (Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652).

use super::{Noiser, NoiserError, NoiserProperties};
use crate::noise::matrix::MatrixView;
use crate::noise::role::Role;
use crate::rng::key::NoiseDistribution;
use serde::{Deserialize, Serialize};

/// Settings of EGGROLL: a matrix `W : [d_input, d_output]` is perturbed by `s·(σ/√r)·B·Aᵀ`, the factors i.i.d. N(0, 1)
/// (Eq. 4), or Rademacher noise ([`NoiseDistribution`]); a convolution's weight likewise, as the matrix of its
/// [`MatrixView`](crate::MatrixView); vectors by dense noise `s·σ·ε`.
///
/// # Example
///
/// ```
/// use eggroll_core::{EggrollConfig, Noiser, Role};
///
/// let noiser = EggrollConfig::new().with_rank(2).init().unwrap();
/// assert_eq!(noiser.role(&[784, 64]), Role::LowRank { rank: 2 });
/// assert_eq!(noiser.role(&[64]), Role::Dense);
/// assert!(EggrollConfig::new().with_rank(0).init().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EggrollConfig {
    /// Columns `r` of the factors.
    pub rank: usize,
    /// Freeze every parameter that is not a matrix.
    pub freeze_non_matrix: bool,
    /// Distribution of every noise element.
    #[serde(skip_serializing_if = "NoiseDistribution::is_default")]
    pub distribution: NoiseDistribution,
    /// Dense noise for thin matrices, whose factors would save nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thin_dense: bool,
}

impl Default for EggrollConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl EggrollConfig {
    /// Rank 1, dense noise for vectors.
    pub fn new() -> Self {
        Self { rank: 1, freeze_non_matrix: false, distribution: NoiseDistribution::Normal, thin_dense: false }
    }

    /// Sets the columns of the factors.
    pub fn with_rank(mut self, rank: usize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets whether parameters that are not matrices stay as they are.
    pub fn with_freeze_non_matrix(mut self, freeze: bool) -> Self {
        self.freeze_non_matrix = freeze;
        self
    }

    /// Sets the distribution of every noise element: Gaussian by default.
    pub fn with_distribution(mut self, distribution: NoiseDistribution) -> Self {
        self.distribution = distribution;
        self
    }

    /// Sets whether matrices `[d_input, d_output]` with `2·r·(d_input + d_output) ≥ d_input·d_output` get dense noise: off by default, as in the
    /// paper.
    ///
    /// The factors of such a matrix have at least half as many numbers as the matrix. At rank 1, the estimate of low-rank noise has
    /// `(d_input + 2)·(d_output + 2)/(d_input·d_output + 2)` times the variance of dense noise: three times for `[32, 1]`, 1.6 % more for `[256, 256]`.
    pub fn with_thin_dense(mut self, dense: bool) -> Self {
        self.thin_dense = dense;
        self
    }

    /// Builds the noiser.
    ///
    /// # Errors
    ///
    /// [`NoiserError::Rank`] if the rank is 0.
    pub fn init(&self) -> Result<impl Noiser + use<>, NoiserError> {
        self.build()
    }

    pub(super) fn build(&self) -> Result<Eggroll, NoiserError> {
        match self.rank {
            0 => Err(NoiserError::Rank(0)),
            _ => Ok(Eggroll(self.clone())),
        }
    }
}

#[derive(Debug)]
pub(super) struct Eggroll(EggrollConfig);

impl Noiser for Eggroll {
    fn role(&self, shape: &[usize]) -> Role {
        match MatrixView::of(shape) {
            Some(view) if self.0.thin_dense && is_thin(view, self.0.rank) => Role::Dense,
            Some(_) => Role::LowRank { rank: self.0.rank },
            None if self.0.freeze_non_matrix => Role::Frozen,
            None => Role::Dense,
        }
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { distribution: self.0.distribution, ..NoiserProperties::default() }
    }
}

/// Whether factors of this rank are at least half as many numbers as the matrix has elements.
fn is_thin(view: MatrixView, rank: usize) -> bool {
    let factors = rank.saturating_mul(view.d_input.saturating_add(view.d_output));
    factors.saturating_mul(2) >= view.d_input.saturating_mul(view.d_output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_matrices_have_dense_noise_on_request() {
        let roles = |config: EggrollConfig, rank| {
            let noiser = config.with_rank(rank).init().expect("a rank");
            [&[32, 1][..], &[1, 1000], &[256, 2], &[128, 10], &[64, 3, 1, 1], &[64, 3, 5, 5], &[784, 64]]
                .map(|shape| noiser.role(shape) == Role::Dense)
        };
        let plain = EggrollConfig::new();
        assert_eq!(roles(plain.clone(), 4), [false; 7]);
        let thin = plain.clone().with_thin_dense(true);
        assert_eq!(roles(thin.clone(), 1), [true, true, true, false, false, false, false]);
        assert_eq!(roles(thin.clone(), 4), [true, true, true, false, true, false, false]);
        assert_eq!(roles(thin.clone(), usize::MAX), [true; 7]);
        assert_eq!(thin.with_freeze_non_matrix(true).init().expect("a rank").role(&[7]), Role::Frozen);
    }
}
