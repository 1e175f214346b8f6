//! Settings as text: missing ones are defaults, and unknown ones are refused.

use serde::Serialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};

/// Reads a Burn `Config` from some of its settings: `default`, overridden by `given`.
///
/// # Errors
///
/// Names a setting that `default` does not have, with the settings it has; otherwise serde's error.
pub fn filled<C: Serialize + DeserializeOwned, E: Error>(default: &C, given: Map<String, Value>) -> Result<C, E> {
    let mut settings = serde_json::to_value(default).map_err(E::custom)?;
    for (name, value) in given {
        match settings.get_mut(&name) {
            Some(setting) => *setting = value,
            None => {
                let known = settings.as_object().into_iter().flat_map(Map::keys);
                let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
                return Err(E::custom(format!("unknown field `{name}`, expected one of {}", known.join(", "))));
            }
        }
    }
    serde_json::from_value(settings).map_err(E::custom)
}
