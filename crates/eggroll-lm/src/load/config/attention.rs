//! Which positions the attention of a layer sees, and whether it knows their order.

use super::super::error::LoadError;
use super::bounds::positive_number;
use super::fields::ConfigFields;
use super::kind::Kind;
use super::llama::LlamaConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A window of attention: a row sees the newest positions only (sliding-window attention).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionWindow {
    /// Positions that a row sees, its own among them.
    pub positions: usize,
    /// Base of the rotary frequencies in layers with the window, which are not scaled then; `None` for the frequencies of the model.
    pub rope_theta: Option<f64>,
}

/// What sets the attention of a layer apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerAttention {
    /// Whether it sees the [`AttentionWindow`] only.
    pub windowed: bool,
    /// Whether queries and keys are turned by their positions; without it a layer has no positions (NoPE).
    pub rotary: bool,
}

impl LayerAttention {
    /// All positions, turned.
    pub const FULL: Self = Self { windowed: false, rotary: true };
}

const SLIDING: &str = "sliding_attention";
const FULL: &str = "full_attention";

/// The window and the layers as a configuration holds them: nothing is said that changes nothing.
pub(super) fn canonical(
    window: Option<AttentionWindow>,
    context: usize,
    mut layers: Vec<LayerAttention>,
) -> (Option<AttentionWindow>, Vec<LayerAttention>) {
    let window = window.filter(|window| window.positions < context || window.rope_theta.is_some());
    if window.is_none() {
        layers.iter_mut().for_each(|layer| layer.windowed = false);
    }
    if layers.iter().all(|layer| *layer == LayerAttention::FULL) {
        layers.clear();
    }
    (window.filter(|_| layers.iter().any(|layer| layer.windowed)), layers)
}

impl LlamaConfig {
    /// The attention of a layer.
    pub fn attention_of(&self, layer: usize) -> LayerAttention {
        self.attention.get(layer).copied().unwrap_or(LayerAttention::FULL)
    }

    pub(super) fn validate_attention(&self) -> Result<(), LoadError> {
        let (found, layers) = (self.attention.len(), self.layers);
        if found > 0 && found != layers {
            return Err(LoadError::config(
                "attention",
                format!("of {found} layers"),
                format!("of {layers}, or of none"),
            ));
        }
        let windowed = self.attention.iter().any(|layer| layer.windowed);
        match self.window {
            None if windowed => Err(LoadError::config("window", "none", "the window of the layers that have it")),
            Some(AttentionWindow { positions: 0, .. }) => Err(LoadError::config("positions of window", 0, "1 or more")),
            Some(AttentionWindow { rope_theta: Some(theta), .. }) => positive_number("rope_theta of window", theta),
            _ => Ok(()),
        }
    }

    /// Fields of `config.json` about the attention of single layers.
    pub(super) fn attention_json(&self, kind: Kind) -> Map<String, Value> {
        let mut json = Map::new();
        let mut put = |key: &str, value: Value| drop(json.insert(key.into(), value));
        let layers = || (0..self.layers).map(|layer| self.attention_of(layer));
        let types: Vec<&str> = layers().map(|layer| if layer.windowed { SLIDING } else { FULL }).collect();
        let positions = self.window.map(|window| window.positions);
        match kind {
            Kind::Llama => {}
            Kind::Mistral => put("sliding_window", positions.into()),
            // Layers without a type, in older versions, have the window from some layer on.
            Kind::Qwen2 | Kind::Qwen3 if positions.is_some() => {
                let full = layers().take_while(|layer| !layer.windowed).count();
                put("use_sliding_window", true.into());
                put("max_window_layers", full.into());
                put("sliding_window", positions.into());
                put("layer_types", types.into());
            }
            Kind::Qwen2 | Kind::Qwen3 => {}
            Kind::SmolLm3 => {
                put("no_rope_layers", layers().map(|layer| u8::from(layer.rotary)).collect::<Vec<_>>().into());
                put("use_sliding_window", positions.is_some().into());
                put("sliding_window", positions.into());
                put("layer_types", types.into());
            }
            Kind::Gemma2 | Kind::Gemma3 => {
                // Null is no window to transformers, but it asks for a number.
                put("sliding_window", positions.unwrap_or(self.context_length).into());
                put("layer_types", types.into());
                if let Some(theta) = self.window.and_then(|window| window.rope_theta) {
                    put("rope_local_base_freq", theta.into());
                }
            }
        }
        json
    }
}

/// Which layers of a `config.json` have the window, and the window.
pub(super) fn from_fields(
    fields: &ConfigFields,
    kind: Kind,
    context: usize,
    layers: usize,
    window_theta: Option<f64>,
) -> Result<(Option<AttentionWindow>, Vec<LayerAttention>), LoadError> {
    let positions = window_positions(fields, kind)?;
    let rotary = rotary_layers(fields, kind, layers)?;
    let windowed = match layer_types(fields, kind, layers)? {
        Some(windowed) => windowed,
        None => by_default(fields, kind, layers, positions.is_some(), &rotary)?,
    };
    if positions.is_none() && windowed.contains(&true) {
        let supported = "full_attention, or a sliding_window that is in use";
        return Err(fields.unsupported("layer_types", SLIDING, supported));
    }
    let layer = |(windowed, rotary)| LayerAttention { windowed, rotary };
    let layers = windowed.into_iter().zip(rotary).map(layer).collect();
    let window = positions.map(|positions| AttentionWindow { positions, rope_theta: window_theta });
    Ok(canonical(window, context, layers))
}

/// The length of the window, if one is in use.
fn window_positions(fields: &ConfigFields, kind: Kind) -> Result<Option<usize>, LoadError> {
    let used = match kind {
        Kind::Llama => false,
        Kind::Mistral | Kind::Gemma2 | Kind::Gemma3 => true,
        Kind::Qwen2 | Kind::Qwen3 | Kind::SmolLm3 => fields.flag("use_sliding_window")?.unwrap_or(false),
    };
    // Null means none, a missing field what transformers takes for it.
    let missing = (kind != Kind::SmolLm3 && !fields.is_named("sliding_window")).then_some(4096);
    Ok(fields.optional_size("sliding_window")?.or(missing).filter(|_| used))
}

/// Which layers turn queries and keys.
fn rotary_layers(fields: &ConfigFields, kind: Kind, layers: usize) -> Result<Vec<bool>, LoadError> {
    if kind != Kind::SmolLm3 {
        return Ok(vec![true; layers]);
    }
    if !fields.has("no_rope_layers") {
        let interval = fields.optional_size("no_rope_layer_interval")?.unwrap_or(4);
        let rotary = |layer: usize| (layer + 1).checked_rem(interval).map(|rest| rest != 0);
        let none = || LoadError::config("no_rope_layer_interval", interval, "1 or more");
        return (0..layers).map(rotary).collect::<Option<_>>().ok_or_else(none);
    }
    let given = fields.sizes("no_rope_layers")?;
    match given.iter().find(|flag| **flag > 1) {
        Some(flag) => Err(fields.unsupported("no_rope_layers", flag, "0 or 1 for each layer")),
        None if given.len() < layers => {
            Err(fields.unsupported("no_rope_layers", format!("of {} layers", given.len()), format!("of {layers}")))
        }
        None => Ok(given.into_iter().take(layers).map(|flag| flag == 1).collect()),
    }
}

/// Which layers have the window, if the file says it of each.
fn layer_types(fields: &ConfigFields, kind: Kind, layers: usize) -> Result<Option<Vec<bool>>, LoadError> {
    let Some(types) = fields.texts("layer_types")? else { return Ok(None) };
    let has_types = !matches!(kind, Kind::Llama | Kind::Mistral);
    let windowed = |found: &&str| match *found {
        FULL => Ok(false),
        SLIDING if has_types => Ok(true),
        found if has_types => Err(fields.unsupported("layer_types", found, format!("{FULL}, {SLIDING}"))),
        found => Err(fields.unsupported("layer_types", found, FULL)),
    };
    let windowed = types.iter().map(windowed).collect::<Result<Vec<_>, _>>()?;
    if !has_types {
        return Ok(None);
    }
    match windowed.len() == layers {
        true => Ok(Some(windowed)),
        false => {
            Err(fields.unsupported("layer_types", format!("of {} layers", windowed.len()), format!("of {layers}")))
        }
    }
}

/// Which layers have the window, if the file does not say it of each.
fn by_default(
    fields: &ConfigFields,
    kind: Kind,
    layers: usize,
    has_window: bool,
    rotary: &[bool],
) -> Result<Vec<bool>, LoadError> {
    if !has_window {
        return Ok(vec![false; layers]);
    }
    let first = match kind {
        Kind::Qwen2 | Kind::Qwen3 => fields.optional_size("max_window_layers")?.unwrap_or(28),
        _ => 0,
    };
    // Of so many layers the last one sees everything.
    let period = match kind {
        Kind::Gemma2 => Some(2),
        Kind::Gemma3 => Some(fields.optional_size("sliding_window_pattern")?.unwrap_or(6)),
        _ => None,
    };
    if period == Some(0) {
        return Err(LoadError::config("sliding_window_pattern", 0, "1 or more"));
    }
    let windowed = |layer: usize| match (kind, period) {
        (Kind::SmolLm3, _) => !rotary[layer],
        (_, Some(period)) => !(layer + 1).is_multiple_of(period),
        (_, None) => layer >= first,
    };
    Ok((0..layers).map(windowed).collect())
}
