//! Settings as text: missing ones are defaults, and unknown ones are refused.

use serde::Serialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};

/// Settings that Burn's `Config` reads only as a whole, from some of them: `default` with what `given` sets.
///
/// # Errors
///
/// Names the setting that `default` does not have, with those it has; or what serde refuses.
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
