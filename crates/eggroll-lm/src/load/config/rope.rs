//! Rotary position embeddings for longer contexts than in pretraining.

use super::super::error::LoadError;
use super::bounds::positive_number;
use super::fields::ConfigFields;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How the frequencies of a rotary embedding are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    None,
    /// Every frequency is divided by one factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Llama 3: long wavelengths are divided by a factor, short ones stay, those in between change gradually.
    Llama3 {
        /// The factor of long wavelengths.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are long.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are short.
        high_freq_factor: f64,
        /// Context length of pretraining.
        original_context: usize,
    },
}

const SUPPORTED: &str = "default, linear, llama3";

impl RopeScaling {
    /// The divisors of the frequencies of a rotary embedding of this size: `head_dim / 2` factors.
    ///
    /// With `λᵢ = 2π θ^(2i / head_dim)`, the factors of Llama 3 are 1 where `λᵢ` is short, `factor` where it is long, and
    /// `1 / ((1 − s) / factor + s)` between, with `s = (original_context / λᵢ − low) / (high − low)`.
    pub fn divisors(&self, head_dim: usize, theta: f64) -> Vec<f64> {
        let wavelength = |i: usize| std::f64::consts::TAU * theta.powf(2.0 * i as f64 / head_dim as f64);
        let divisor = |i: usize| match *self {
            Self::None => 1.0,
            Self::Linear { factor } => factor,
            Self::Llama3 { factor, low_freq_factor: low, high_freq_factor: high, original_context } => {
                let turns = original_context as f64 / wavelength(i);
                match turns {
                    _ if turns > high => 1.0,
                    _ if turns < low => factor,
                    _ => {
                        let smooth = (turns - low) / (high - low);
                        1.0 / ((1.0 - smooth) / factor + smooth)
                    }
                }
            }
        };
        (0..head_dim / 2).map(divisor).collect()
    }

    /// From the parameters of a rotary embedding.
    fn from_parameters(fields: &ConfigFields, scaling: &ConfigFields, context: usize) -> Result<Self, LoadError> {
        if let Some(key) = scaling.nested() {
            return Err(scaling.unsupported("rope_parameters", format!("of {key}"), "the same for all layers"));
        }
        scaling.only("partial_rotary_factor", 1.0)?;
        scaling.only("mrope_section", Value::Null)?;
        let kind = scaling.text("rope_type")?.or(scaling.text("type")?).unwrap_or("default");
        let number = |key: &str| {
            scaling
                .number(key)?
                .ok_or_else(|| LoadError::config(format!("{key} of rope_scaling"), "missing", "a number"))
        };
        Ok(match kind {
            "default" => Self::None,
            "linear" => Self::Linear { factor: number("factor")? },
            "llama3" => Self::Llama3 {
                factor: number("factor")?,
                low_freq_factor: number("low_freq_factor")?,
                high_freq_factor: number("high_freq_factor")?,
                original_context: original_context(fields, scaling, context)?,
            },
            found => return Err(scaling.unsupported("rope_scaling", found, SUPPORTED)),
        })
    }

    pub(super) fn validate(&self) -> Result<(), LoadError> {
        match *self {
            Self::None => Ok(()),
            Self::Linear { factor } => positive_number("factor of rope_scaling", factor),
            Self::Llama3 { factor, low_freq_factor: low, high_freq_factor: high, original_context } => {
                positive_number("factor of rope_scaling", factor)?;
                positive_number("low_freq_factor of rope_scaling", low)?;
                positive_number("high_freq_factor of rope_scaling", high)?;
                positive_number("original_context of rope_scaling", original_context as f64)?;
                if low < high {
                    return Ok(());
                }
                Err(LoadError::config(
                    "low_freq_factor of rope_scaling",
                    low,
                    format!("less than high_freq_factor, {high}"),
                ))
            }
        }
    }

    pub(super) fn to_json(self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => json!({
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": low_freq_factor,
                "high_freq_factor": high_freq_factor,
                "original_max_position_embeddings": original_context,
            }),
        }
    }
}

/// The rotary embeddings of a model's layers.
pub(super) struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    pub scaling: RopeScaling,
    /// Base in layers with a window, if it differs.
    pub window_theta: Option<f64>,
}

/// The same for all layers: from `rope_scaling`, or from `rope_parameters` of newer files, as transformers reads them. The base among the
/// parameters counts first.
pub(super) fn for_all(fields: &ConfigFields, missing_theta: f64, context: usize) -> Result<Rope, LoadError> {
    let parameters = rope(fields)?;
    let inner = parameters.as_ref().map_or(Ok(None), |parameters| parameters.number("rope_theta"))?;
    let scaling = parameters
        .map_or(Ok(RopeScaling::None), |parameters| RopeScaling::from_parameters(fields, &parameters, context))?;
    let theta = inner.or(fields.number("rope_theta")?).unwrap_or(missing_theta);
    Ok(Rope { theta, scaling, window_theta: None })
}

/// Layers with a window have a separate base, and no scaling: `rope_parameters` by type of layer, or `rope_scaling`, `rope_theta` and
/// `rope_local_base_freq` of older files.
pub(super) fn by_layer(fields: &ConfigFields, missing_theta: f64, context: usize) -> Result<Rope, LoadError> {
    let filled = |key: &str| Ok(fields.inner(key)?.filter(|parameters| !parameters.is_empty()));
    let (scaling, by_type) = (filled("rope_scaling")?, filled("rope_parameters")?);
    let of_type = |key: &str| by_type.as_ref().map_or(Ok(None), |by_type| by_type.inner(key));
    let (full, sliding) = (of_type("full_attention")?, of_type("sliding_attention")?);
    if by_type.is_some() && full.is_none() && sliding.is_none() {
        let supported = "of full_attention and sliding_attention";
        return Err(fields.unsupported("rope_parameters", "the same for all layers", supported));
    }
    if scaling.is_some() && full.is_some() {
        return Err(fields.unsupported("rope_parameters", "and rope_scaling", "one of both"));
    }
    if let Some(sliding) = &sliding {
        sliding.only("rope_type", "default")?;
    }
    let theta_of = |parameters: &Option<ConfigFields>| {
        parameters.as_ref().map_or(Ok(None), |parameters| parameters.number("rope_theta"))
    };
    let theta = theta_of(&full)?.or(theta_of(&scaling)?).or(fields.number("rope_theta")?).unwrap_or(missing_theta);
    let local = theta_of(&sliding)?.or(fields.number("rope_local_base_freq")?).unwrap_or(10_000.0);
    let scaling = full
        .or(scaling)
        .map_or(Ok(RopeScaling::None), |parameters| RopeScaling::from_parameters(fields, &parameters, context))?;
    Ok(Rope { theta, scaling, window_theta: Some(local) })
}

/// The parameters that count: `rope_scaling` unless it is empty, else `rope_parameters`.
fn rope<'a>(fields: &ConfigFields<'a>) -> Result<Option<ConfigFields<'a>>, LoadError> {
    Ok(match fields.inner("rope_scaling")?.filter(|scaling| !scaling.is_empty()) {
        None => fields.inner("rope_parameters")?,
        scaling => scaling,
    })
}

/// The context length of pretraining: of the parameters, or next to them, or the context itself.
fn original_context(fields: &ConfigFields, scaling: &ConfigFields, context: usize) -> Result<usize, LoadError> {
    let key = "original_max_position_embeddings";
    match (scaling.optional_size(key)?, fields.optional_size(key)?) {
        (Some(inner), Some(outer)) if inner != outer => {
            Err(fields.unsupported(key, format!("{outer}, and {inner} in rope_scaling"), "one of both"))
        }
        (inner, outer) => Ok(inner.or(outer).unwrap_or(context)),
    }
}

#[cfg(test)]
mod tests {
    use super::RopeScaling;

    #[test]
    fn llama_3_divides_long_wavelengths_only() {
        let (low_freq_factor, high_freq_factor, original_context) = (1.0, 4.0, 8192);
        let scaling = RopeScaling::Llama3 { factor: 32.0, low_freq_factor, high_freq_factor, original_context };
        let divisors = scaling.divisors(64, 500_000.0);
        assert_eq!(divisors.len(), 32);
        assert_eq!(divisors[..14], [1.0; 14]);
        assert_eq!(divisors[31], 32.0);
        assert!(divisors.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
