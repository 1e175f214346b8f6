//! The walk over all numbers of a configuration.

use ciborium::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::panic::{self, AssertUnwindSafe};

/// What a configuration with another number led to.
pub enum Outcome {
    /// An error or panic with this text, before anything was computed.
    Refused(String),
    /// A panic where there should be an error.
    Panicked(String),
    /// Used: this is wrong with what came of it, if anything is.
    Used(Option<String>),
}

/// Replaces every number of `config`, one after the other, and tries what it makes; returns how many were tried.
///
/// # Panics
///
/// Panics with all fields and values whose outcome is neither a refusal that names field or value, nor harmless.
pub fn walk<C: Serialize + DeserializeOwned>(name: &str, config: &C, attempt: impl Fn(C) -> Outcome) -> usize {
    let (tried, wrong) = faults(config, attempt);
    assert!(tried > 0, "{name} has no numbers: it is not to be walked");
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    tried
}

/// How many numbers were tried, and what was wrong.
pub fn faults<C: Serialize + DeserializeOwned>(config: &C, attempt: impl Fn(C) -> Outcome) -> (usize, Vec<String>) {
    let whole = Value::serialized(config).expect("a configuration is data");
    let mut leaves = Vec::new();
    collect(&whole, Vec::new(), &mut leaves);
    let (mut tried, mut wrong) = (0, Vec::new());
    for (place, field) in leaves {
        for value in values(at(&mut whole.clone(), &place)) {
            let mut changed = whole.clone();
            *at(&mut changed, &place) = value.clone();
            tried += 1;
            let text = shown(&value);
            let problem = match changed.deserialized::<C>() {
                // Refused by the field's type.
                Err(_) => None,
                Ok(config) => match panic::catch_unwind(AssertUnwindSafe(|| attempt(config))) {
                    Err(panic) => Some(format!("panic: {}", panic_text(&*panic))),
                    Ok(Outcome::Panicked(text)) => Some(format!("panic: {text}")),
                    Ok(Outcome::Refused(message)) if names(&message, &field, &text) => None,
                    Ok(Outcome::Refused(message)) => Some(format!("neither field nor value: {message}")),
                    Ok(Outcome::Used(problem)) => problem,
                },
            };
            wrong.extend(problem.map(|problem| format!("{field} = {text}: {problem}")));
        }
    }
    (tried, wrong)
}

/// What a number is replaced by.
fn values(old: &Value) -> Vec<Value> {
    let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1.0, 0.0, 1e-320];
    match old {
        Value::Float(_) => floats.into_iter().map(Value::Float).collect(),
        _ => [u64::MAX, 0].into_iter().map(|value| Value::Integer(value.into())).collect(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Float(number) => format!("{number:?}"),
        Value::Integer(number) => i128::from(*number).to_string(),
        other => format!("{other:?}"),
    }
}

/// Whether a message has a name of the field, in the words of a sentence too, or the value.
fn names(message: &str, field: &str, value: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('_', " ");
    let mut names = field.split('.').filter(|name| !name.is_empty() && name.parse::<usize>().is_err());
    names.any(|name| plain(message).contains(&plain(name)))
        || message.contains(value)
        || message.contains(&format!("not {}", value.trim_end_matches(".0")))
}

pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

/// Places of children from the top down.
type Place = Vec<usize>;

fn collect(value: &Value, place: Place, leaves: &mut Vec<(Place, String)>) {
    fn down(value: &Value, place: Place, name: String, leaves: &mut Vec<(Place, String)>) {
        let child = |index: usize| place.iter().copied().chain([index]).collect::<Place>();
        match value {
            Value::Integer(_) | Value::Float(_) => leaves.push((place, name)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| down(item, child(i), format!("{name}.{i}"), leaves));
            }
            Value::Map(fields) => fields.iter().enumerate().for_each(|(i, (field, value))| {
                down(value, child(i), format!("{name}.{}", field.as_text().expect("a name")), leaves);
            }),
            _ => {}
        }
    }
    down(value, place, String::new(), leaves);
}

fn at<'a>(value: &'a mut Value, place: &[usize]) -> &'a mut Value {
    let Some((first, rest)) = place.split_first() else { return value };
    match value {
        Value::Array(items) => at(&mut items[*first], rest),
        Value::Map(fields) => at(&mut fields[*first].1, rest),
        _ => unreachable!("a place of the value"),
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Dummy {
    scale: f64,
    count: usize,
    deep: Vec<Option<f32>>,
}

/// Canary: a configuration that nobody checks makes the walk fail, and one that is checked does not.
#[test]
fn an_unchecked_configuration_is_found() {
    let dummy = || Dummy { scale: 1.0, count: 2, deep: vec![None, Some(0.5)] };
    let unchecked = |dummy: Dummy| {
        let result = dummy.scale as f32 * dummy.deep[1].unwrap_or(0.0);
        Outcome::Used((!result.is_finite() || result == 0.0).then(|| "not a number that moves".to_owned()))
    };
    let (tried, wrong) = faults(&dummy(), unchecked);
    assert_eq!(tried, 7 + 2 + 7);
    for fault in [".scale = NaN", ".scale = 1e300", ".scale = 1e-320", ".deep.1 = -inf"] {
        assert!(wrong.iter().any(|wrong| wrong.starts_with(fault)), "{fault}: {wrong:?}");
    }
    let panics = |dummy: Dummy| Outcome::Used((dummy.count * 2 == 1).then(String::new));
    assert!(!faults(&dummy(), panics).1.is_empty(), "an overflow is a panic");
    let refused = |text: &'static str| faults(&dummy(), move |_| Outcome::Refused(text.to_owned())).1;
    assert!(!refused("no").is_empty());
    assert!(refused("scale, count and deep").is_empty());
}
