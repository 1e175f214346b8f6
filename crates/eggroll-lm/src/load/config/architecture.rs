//! Differences of the Llama family from Llama.

use super::super::error::LoadError;
use super::super::kind::Kind;
use super::attention::{AttentionWindow, FULL, LayerAttention, SLIDING};
use super::bounds::positive_number;
use super::llama::LlamaConfig;
use serde_json::{Map, Value};

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
                // For transformers null means no window, but a number is required.
                put("sliding_window", positions.unwrap_or(self.context_length).into());
                put("layer_types", types.into());
                if let Some(theta) = self.window.and_then(|window| window.rope_theta) {
                    put("rope_local_base_freq", theta.into());
                }
            }
        }
        json
    }

    /// The simplest architecture that computes a configuration.
    ///
    /// # Errors
    ///
    /// [`LoadError::Config`] for a combination that no architecture has.
    pub(super) fn kind(&self) -> Result<Kind, LoadError> {
        let windowed = self.attention.iter().filter(|layer| layer.windowed).count();
        let has_nope = self.attention.iter().any(|layer| !layer.rotary);
        let kind = match (&self.gemma, self.qk_norm) {
            (Some(_), true) => Kind::Gemma3,
            (Some(_), false) => Kind::Gemma2,
            (None, true) => Kind::Qwen3,
            (None, false) if has_nope => Kind::SmolLm3,
            (None, false) if self.attention_bias => Kind::Qwen2,
            (None, false) if windowed == 0 => Kind::Llama,
            (None, false) if windowed == self.layers => Kind::Mistral,
            (None, false) => Kind::SmolLm3,
        };
        let name = kind.names().0;
        if self.attention_bias && kind != Kind::Qwen2 {
            return Err(LoadError::config("attention_bias", true, format!("false in a model of {name}")));
        }
        if has_nope && kind != Kind::SmolLm3 {
            return Err(LoadError::config("rotary", false, format!("true in all layers of a model of {name}")));
        }
        let own_theta = self.window.and_then(|window| window.rope_theta);
        match own_theta {
            Some(theta) if kind != Kind::Gemma3 => {
                Err(LoadError::config("rope_theta of window", theta, format!("none in a model of {name}")))
            }
            None if kind == Kind::Gemma3 && windowed > 0 => {
                Err(LoadError::config("rope_theta of window", "none", format!("a number in a model of {name}")))
            }
            _ => Ok(kind),
        }
    }
}
