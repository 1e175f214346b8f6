//! Sign EGGROLL: members as in EGGROLL, and an estimate that uses only the signs of the factors. It is the variant "alt" of
//! HyperscaleES, the code of Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.

use super::eggroll::Eggroll;
use super::{EggrollConfig, Noiser, NoiserError, NoiserProperties};
use crate::noise::role::Role;

/// Builds sign EGGROLL with the settings of EGGROLL: a matrix is perturbed by `s·(σ/√r)·B·Aᵀ`, and its estimate is
/// `Σ_q w_q·(σ/√r)·sign(B_q)·sign(A_q)ᵀ`. Other parameters have dense noise and its estimate.
///
/// For normal noise and a linear or quadratic fitness, the expected estimate of a matrix is `2/π` of EGGROLL's, as
/// `E|n|² = 2/π`. Rademacher values are their own signs: then the two are the same.
///
/// # Errors
///
/// [`NoiserError::Rank`] if the rank is 0.
pub(super) fn init(config: &EggrollConfig) -> Result<impl Noiser + use<>, NoiserError> {
    Ok(SignEggroll(config.build()?))
}

#[derive(Debug)]
struct SignEggroll(Eggroll);

impl Noiser for SignEggroll {
    fn role(&self, shape: &[usize]) -> Role {
        self.0.role(shape)
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { counts_signs: true, ..self.0.properties() }
    }
}
