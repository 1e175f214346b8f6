//! A configuration as text: missing fields have the values of [`EvolutionStrategyConfig::new`], which depend on noiser and optimizer.

use super::EvolutionStrategyConfig;
use crate::optimizer::OptimizerConfig;
use eggroll_core::NoiserConfig;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

impl Serialize for EvolutionStrategyConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for EvolutionStrategyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Map::<String, Value>::deserialize(deserializer)?;
        let (noiser, optimizer): (NoiserConfig, OptimizerConfig) =
            (needed(&given, "noiser")?, needed(&given, "optimizer")?);
        let default = Self::new(noiser, optimizer);
        let mut all = serde_json::to_value(&default).map_err(D::Error::custom)?;
        all.as_object_mut().expect("a structure").extend(given);
        Self::deserialize(all).map_err(D::Error::custom)
    }
}

fn needed<T: DeserializeOwned, E: Error>(given: &Map<String, Value>, field: &'static str) -> Result<T, E> {
    let value = given.get(field).ok_or_else(|| E::missing_field(field))?;
    serde_json::from_value(value.clone()).map_err(E::custom)
}
