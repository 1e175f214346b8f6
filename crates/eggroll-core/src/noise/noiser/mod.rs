//! Noisers: which parameters are perturbed, and how.
//!
//! One algorithm per file. A noiser gives each parameter a [`Role`], and everything else in [`NoiserProperties`]. What follows
//! from a role, perturbed operations and estimates, is the same for all: [`ParameterNoise`](crate::ParameterNoise).
//! [`NoiserConfig`] is the registry: add a file, a variant with its arms, and its name there. [`CustomNoiser`] is a noiser of another
//! crate.

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

    /// What differs from Gaussian noise for float parameters and its plain estimate; always the same. A noiser that wraps another
    /// passes on the other's: `NoiserProperties { baselines: 4, ..self.inner.properties() }`.
    fn properties(&self) -> NoiserProperties {
        NoiserProperties::default()
    }

    /// What checkpoints and replay logs call it where it is a [`CustomNoiser`]: with every setting that changes what it does, since a
    /// saved run is not continued under another name. As [`Debug`] prints it, unless said otherwise.
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
    /// Whether it perturbs nothing on purpose: then all parameters are frozen, whatever roles they are given.
    pub no_op: bool,
}
