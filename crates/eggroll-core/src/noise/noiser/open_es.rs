//! OpenES: dense noise (Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning",
//! arXiv 1703.03864).

use super::{Noiser, NoiserProperties};
use crate::noise::matrix::MatrixView;
use crate::noise::role::Role;
use crate::rng::key::NoiseDistribution;
use serde::{Deserialize, Serialize};

/// Settings of OpenES: every parameter is perturbed by `s·σ·ε`, ε i.i.d. N(0, 1) (Algorithm 1, antithetic), or
/// Rademacher noise ([`NoiseDistribution`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenEsConfig {
    /// Freeze every parameter that is not a matrix.
    pub freeze_non_matrix: bool,
    /// Distribution of every noise element.
    #[serde(skip_serializing_if = "NoiseDistribution::is_default")]
    pub distribution: NoiseDistribution,
}

impl OpenEsConfig {
    /// Dense noise for all parameters.
    pub fn new() -> Self {
        Self::default()
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
    pub fn init(&self) -> impl Noiser + use<> {
        OpenEs(self.clone())
    }
}

#[derive(Debug)]
struct OpenEs(OpenEsConfig);

impl Noiser for OpenEs {
    fn role(&self, shape: &[usize]) -> Role {
        match MatrixView::of(shape) {
            None if self.0.freeze_non_matrix => Role::Frozen,
            _ => Role::Dense,
        }
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { distribution: self.0.distribution, ..NoiserProperties::default() }
    }
}
