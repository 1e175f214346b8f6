//! Sparse noise: a few entries of every matrix (as in HyperscaleES, the code of Sarkar et al., "Evolution Strategies at the
//! Hyperscale", arXiv 2511.16652).

use super::{Noiser, NoiserProperties};
use crate::noise::matrix::MatrixView;
use crate::noise::role::Role;
use crate::rng::key::NoiseDistribution;
use serde::{Deserialize, Serialize};

/// Settings of sparse noise: in a matrix `[d_input, d_output]`, `k = max(d_input, d_output)` entries, drawn with replacement,
/// are perturbed by `s·σ·N(0, 1)` each ([`crate::rng::sparse`]). Other parameters get dense noise.
///
/// The estimate of a matrix is the weighted sum of its noise times `k/(d_input·d_output)`, as in the reference. An entry is also
/// perturbed with that probability. For a linear or quadratic fitness the expected estimate is therefore `(k/(d_input·d_output))²`
/// of dense noise's. Large matrices learn slowly unless the optimizer normalizes, as Adam does.
///
/// # Example
///
/// ```
/// use eggroll_core::{Noiser, Role, SparseConfig};
///
/// let noiser = SparseConfig::new().init();
/// assert_eq!(noiser.role(&[784, 64]), Role::Sparse);
/// assert_eq!(Role::Sparse.noise_elements(&[784, 64]), 784);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SparseConfig {
    /// Freeze every parameter that is not a matrix.
    pub freeze_non_matrix: bool,
    /// Distribution of every noise element.
    #[serde(skip_serializing_if = "NoiseDistribution::is_default")]
    pub distribution: NoiseDistribution,
}

impl SparseConfig {
    /// Sparse noise for matrices, dense noise for vectors.
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
        Sparse(self.clone())
    }
}

#[derive(Debug)]
struct Sparse(SparseConfig);

impl Noiser for Sparse {
    fn role(&self, shape: &[usize]) -> Role {
        match MatrixView::of(shape) {
            Some(_) => Role::Sparse,
            None if self.0.freeze_non_matrix => Role::Frozen,
            None => Role::Dense,
        }
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { distribution: self.0.distribution, ..NoiserProperties::default() }
    }
}
