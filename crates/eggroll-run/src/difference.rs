//! Where two configurations differ.

use serde::Serialize;
use serde_json::Value;

/// The first field in which two configurations of one type differ, as `strategy.sigma.initial`, with both values as JSON; `None` if they
/// are equal.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// let found = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
/// let expected = found.clone().with_seed(7);
/// let different = eggroll_run::difference(&found, &expected);
/// assert_eq!(different, Some(("seed".into(), "0".into(), "7".into())));
/// ```
pub fn difference<T: Serialize>(found: &T, expected: &T) -> Option<(String, String, String)> {
    let [found, expected] = [found, expected].map(|value| serde_json::to_value(value).unwrap_or_default());
    first("", &found, &expected)
}

fn first(path: &str, found: &Value, expected: &Value) -> Option<(String, String, String)> {
    match (found, expected) {
        (Value::Object(these), Value::Object(those)) => {
            let names = these.keys().chain(those.keys().filter(|name| !these.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                first(&path, these.get(name).unwrap_or(&Value::Null), those.get(name).unwrap_or(&Value::Null))
            })
        }
        _ if found == expected => None,
        _ => Some((path.to_owned(), found.to_string(), expected.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_field_is_named_with_both_values() {
        let value = json!({ "strategy": { "seed": 1, "sigma": [0.1, 0.2] }, "data": null });
        assert_eq!(difference(&value, &value), None);
        let other = json!({ "strategy": { "seed": 1, "sigma": [0.1, 0.3] }, "data": null });
        let expected = ("strategy.sigma".to_owned(), "[0.1,0.2]".to_owned(), "[0.1,0.3]".to_owned());
        assert_eq!(difference(&value, &other), Some(expected));
        let more = json!({ "strategy": { "seed": 1, "sigma": [0.1, 0.2], "rank": 2 }, "data": null });
        let expected = ("strategy.rank".to_owned(), "null".to_owned(), "2".to_owned());
        assert_eq!(difference(&value, &more), Some(expected));
    }
}
