//! Which estimates are projected onto the rows that their layers saw.

use crate::error::ConfigError;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which weights' estimates are projected onto the span of the rows that their layers were given
/// ([`row_projection`](eggroll_core::ops::row_projection)).
///
/// The gradient of a weight with input rows `x : [rows, d_input]` is `xᵀ·δ`: its columns lie in the span of the rows. Of the
/// `d_input · d_output` noisy dimensions of an estimate only `rows · d_output` can be gradient, if there are fewer rows than inputs; a
/// projection takes the others away. It is for fitness on a batch of few rows that are the same for all members, as in supervised
/// learning. A weight that is used several times in one forward, or on as many rows as it has inputs, is left alone.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::{EvolutionStrategyConfig, InputProjection};
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
///     .with_input_projection(InputProjection::Unperturbed);
/// assert_eq!("unperturbed".parse::<InputProjection>().unwrap(), config.input_projection);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputProjection {
    /// None.
    #[default]
    Off,
    /// Those of layers on shared rows (`forward_shared`). Fitness depends on the noise `E` of such a layer only through `x·E`, so
    /// the rest of it has no part in the expectation: the same mean (with Rademacher noise, but for terms that the true gradient does
    /// not have), less variance. The rows must be the same in every chunk of a generation.
    Shared,
    /// Those of all linear layers and convolutions, onto the rows that the model without noise gives them. For layers behind the
    /// first these are not the members' rows: what an estimate has outside their span, of order σ² of a smooth model, is lost, and
    /// with it nothing of the gradient at σ → 0.
    ///
    /// An evaluation calls its closure once more, for two members without noise, whose fitness is dropped. All members must be given the
    /// same rows; `evaluate_each`, whose members are separate models, projects nothing.
    Unperturbed,
}

/// The name, as in configuration files.
impl fmt::Display for InputProjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The projection of that name, as in configuration files.
impl FromStr for InputProjection {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| ConfigError::ProjectionName(error.to_string()))
    }
}
