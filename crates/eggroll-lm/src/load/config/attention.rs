//! The positions that a layer's attention sees, and whether it knows their order.

use super::super::error::LoadError;
use super::super::kind::Kind;
use super::fields::ConfigFields;
use serde::{Deserialize, Serialize};

/// A window of attention: a row sees the newest positions only (sliding-window attention).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionWindow {
    /// Positions that a row sees, including its own.
    pub positions: usize,
    /// Base of the rotary frequencies in layers with the window, which are then not scaled; `None` for the frequencies of the model.
    pub rope_theta: Option<f64>,
}

/// Properties of a layer's attention.
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

pub(super) const SLIDING: &str = "sliding_attention";
pub(super) const FULL: &str = "full_attention";

/// The window and the layers in canonical form, without settings that change nothing.
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
    // Null means none; a missing field has the default of transformers.
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
    // The last of each period of layers sees all positions.
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
