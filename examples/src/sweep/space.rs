//! Parameters: lists and ranges, their points and draws.

use eggroll::core::rng::philox::philox4x32;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One setting of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Text(String),
}

/// The settings that a parameter may have.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// One of a list, or of the steps of a range.
    Points(Vec<Value>),
    /// Anything between two ends, for random searches.
    Between(Between),
}

/// A range without steps.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    low: f64,
    high: f64,
    scale: Scale,
    integer: bool,
}

/// A range as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    low: toml::Value,
    high: toml::Value,
    #[serde(default)]
    scale: Scale,
    steps: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scale {
    #[default]
    Linear,
    Log,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value}"),
        }
    }
}

impl Value {
    fn read(value: &toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Integer(value) => Ok(Self::Integer(*value)),
            toml::Value::Float(value) if value.is_finite() => Ok(Self::Float(*value)),
            toml::Value::Boolean(value) => Ok(Self::Boolean(*value)),
            toml::Value::String(value) => Ok(Self::Text(value.clone())),
            other => Err(format!("a setting must be a finite number, a text or true or false, not {other}")),
        }
    }

    /// The value, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Boolean(_) | Self::Text(_) => None,
        }
    }
}

impl Parameter {
    /// Reads a list, or a range with `low` and `high`.
    pub fn read(value: &toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Array(list) => Self::list(list),
            toml::Value::Table(_) => Range::deserialize(value.clone()).map_err(|error| error.to_string())?.read(),
            other => Err(format!(
                "must be a list or a range {{ low, high }}, not {other}: write what is fixed into the command"
            )),
        }
    }

    fn list(list: &[toml::Value]) -> Result<Self, String> {
        let values = list.iter().map(Value::read).collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err("the list is empty, and so is the grid".into());
        }
        match values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
            Some((_, value)) => Err(format!("{value} is there twice")),
            None => Ok(Self::Points(values)),
        }
    }

    /// All settings, if they can be counted.
    pub fn points(&self) -> Option<&[Value]> {
        match self {
            Self::Points(points) => Some(points),
            Self::Between(_) => None,
        }
    }

    /// The setting that a number from 0 to 1 (left out) stands for: every setting is as likely as any other, or, on a
    /// logarithmic scale, every factor.
    pub fn draw(&self, uniform: f64) -> Value {
        match self {
            Self::Points(points) => points[((uniform * points.len() as f64) as usize).min(points.len() - 1)].clone(),
            Self::Between(range) => range.draw(uniform),
        }
    }
}

impl Range {
    fn read(&self) -> Result<Parameter, String> {
        let (low, high) = (number("low", &self.low)?, number("high", &self.high)?);
        if low >= high {
            return Err(format!("low = {low} is not below high = {high}"));
        }
        if self.scale == Scale::Log && low <= 0.0 {
            return Err(format!("a logarithmic range begins above 0, not at low = {low}"));
        }
        let integer = self.low.is_integer() && self.high.is_integer();
        let between = Between { low, high, scale: self.scale, integer };
        match self.steps {
            None => Ok(Parameter::Between(between)),
            Some(steps @ (0 | 1)) => Err(format!("a range has at least 2 steps, not {steps}")),
            Some(steps) => {
                let mut points: Vec<Value> = (0..steps).map(|i| between.at(i as f64 / (steps - 1) as f64)).collect();
                points.dedup(); // integers that lie closer than steps
                Ok(Parameter::Points(points))
            }
        }
    }
}

impl Between {
    fn at(&self, share: f64) -> Value {
        self.value(interpolate(self.low, self.high, self.scale, share))
    }

    fn draw(&self, uniform: f64) -> Value {
        // Integers at the ends are as likely as others.
        let half = if self.integer { 0.5 } else { 0.0 };
        let drawn = interpolate(self.low - half, self.high + half, self.scale, uniform);
        self.value(drawn.clamp(self.low, self.high))
    }

    fn value(&self, value: f64) -> Value {
        if self.integer { Value::Integer(value.round() as i64) } else { Value::Float(round(value)) }
    }
}

fn number(name: &str, value: &toml::Value) -> Result<f64, String> {
    match value {
        toml::Value::Integer(value) => Ok(*value as f64),
        toml::Value::Float(value) if value.is_finite() => Ok(*value),
        other => Err(format!("{name} must be a finite number, not {other}")),
    }
}

/// `low + share·(high − low)`, or `low·(high/low)^share`.
fn interpolate(low: f64, high: f64, scale: Scale, share: f64) -> f64 {
    match scale {
        Scale::Linear => low + share * (high - low),
        Scale::Log => low * (high / low).powf(share),
    }
}

/// To 12 digits: what a command line shows is what was meant, and ends of ranges are met exactly.
fn round(value: f64) -> f64 {
    format!("{value:.11e}").parse().expect("a number that was just written")
}

/// A number from 0 to 1, 1 left out: a pure function of seed, draw and parameter.
pub fn uniform(seed: u64, draw: u64, parameter: u32) -> f64 {
    let words = philox4x32([draw as u32, (draw >> 32) as u32, parameter, 0], [seed as u32, (seed >> 32) as u32]);
    let bits = u64::from(words[0]) << 32 | u64::from(words[1]);
    (bits >> 11) as f64 * (2f64).powi(-53)
}
