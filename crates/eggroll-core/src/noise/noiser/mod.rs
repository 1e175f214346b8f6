//! Noisers: how parameters are perturbed.
//!
//! One algorithm per file. A noiser gives each parameter a [`Role`]; everything else is in its [`NoiserProperties`]. Perturbed
//! operations and estimates depend only on the role, for all noisers: [`ParameterNoise`](crate::ParameterNoise). [`NoiserConfig`] is
//! the registry: add a file, a variant with its arms, and its name there. [`CustomNoiser`] is a noiser of another crate.

mod baseline;
mod custom;
mod eggroll;
mod error;
mod integer_rule;
mod no_op;
mod open_es;
mod q_eggroll;
mod registry;
mod sign_eggroll;
mod sparse;

pub use baseline::BaselineSubtractionConfig;
pub use custom::CustomNoiser;
pub use eggroll::EggrollConfig;
pub use error::NoiserError;
pub use integer_rule::IntegerRule;
pub use open_es::OpenEsConfig;
pub use q_eggroll::QEggrollConfig;
pub use registry::NoiserConfig;
pub use sparse::SparseConfig;

use crate::noise::role::Role;
use crate::rng::key::NoiseDistribution;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A perturbation of models.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseDistribution, Noiser, NoiserProperties, Role};
///
/// /// Rademacher noise for the elements of matrices, and no noise for other parameters.
/// #[derive(Debug)]
/// struct SignsOfMatrices;
///
/// impl Noiser for SignsOfMatrices {
///     fn role(&self, shape: &[usize]) -> Role {
///         if shape.len() == 2 { Role::Dense } else { Role::Frozen }
///     }
///
///     fn properties(&self) -> NoiserProperties {
///         NoiserProperties { distribution: NoiseDistribution::Rademacher, ..NoiserProperties::default() }
///     }
/// }
///
/// assert_eq!(SignsOfMatrices.name(), "SignsOfMatrices");
/// ```
pub trait Noiser: Debug + Send + Sync {
    /// The role of a parameter of this shape, unless the user says otherwise.
    fn role(&self, shape: &[usize]) -> Role;

    /// Differences from Gaussian noise for float parameters and its plain estimate; constant. A noiser that wraps another passes
    /// on the inner properties: `NoiserProperties { baselines: 4, ..self.inner.properties() }`.
    fn properties(&self) -> NoiserProperties {
        NoiserProperties::default()
    }

    /// The name of a [`CustomNoiser`] in checkpoints and replay logs. It should contain every setting that changes the noise: a saved
    /// run does not continue under another name. By default, the output of [`Debug`].
    fn name(&self) -> String {
        format!("{self:?}")
    }
}

/// Properties of a noiser apart from its roles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoiserProperties {
    /// The distribution of every noise element.
    pub distribution: NoiseDistribution,
    /// Pairs of a group whose first pair has no noise ([`NoiseKey::with_baselines`](crate::NoiseKey::with_baselines)); 0 if there are
    /// none.
    pub baselines: u32,
    /// Whether estimates count the signs of the factors of low-rank noise in place of their values.
    pub counts_signs: bool,
    /// How integer parameters are perturbed and updated; `None` leaves them as they are.
    pub integer: Option<IntegerRule>,
    /// Whether it perturbs nothing on purpose: then all parameters are frozen, regardless of their roles.
    pub no_op: bool,
}
