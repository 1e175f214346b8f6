//! EGGROLL: low-rank noise (Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652).

use super::{Noiser, NoiserError, NoiserProperties};
use crate::key::NoiseDistribution;
use crate::role::Role;
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
}

impl Default for EggrollConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl EggrollConfig {
    /// Rank 1, dense noise for vectors.
    pub fn new() -> Self {
        Self { rank: 1, freeze_non_matrix: false, distribution: NoiseDistribution::Normal }
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
        match shape.len() {
            2.. => Role::LowRank { rank: self.0.rank },
            _ if self.0.freeze_non_matrix => Role::Frozen,
            _ => Role::Dense,
        }
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { distribution: self.0.distribution, ..NoiserProperties::default() }
    }
}
