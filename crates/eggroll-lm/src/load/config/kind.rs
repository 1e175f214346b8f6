//! The architectures that a transformer of the Llama family has in files.

use super::super::error::LoadError;
use super::llama::LlamaConfig;

/// An architecture, as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
    SmolLm3,
    Gemma2,
    Gemma3,
}

/// What a missing field of `config.json` means to transformers.
pub(super) struct Defaults {
    pub context: usize,
    /// Heads of keys; `None` for as many as of queries.
    pub kv_heads: Option<usize>,
    /// `None` for the even part of the width.
    pub head_dim: Option<usize>,
    pub rope_theta: f64,
    pub tied_head: bool,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Llama, Self::Mistral, Self::Qwen2, Self::Qwen3, Self::SmolLm3, Self::Gemma2, Self::Gemma3];

    /// `model_type` of `config.json`, and the class of transformers.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Llama => ("llama", "LlamaForCausalLM"),
            Self::Mistral => ("mistral", "MistralForCausalLM"),
            Self::Qwen2 => ("qwen2", "Qwen2ForCausalLM"),
            Self::Qwen3 => ("qwen3", "Qwen3ForCausalLM"),
            Self::SmolLm3 => ("smollm3", "SmolLM3ForCausalLM"),
            Self::Gemma2 => ("gemma2", "Gemma2ForCausalLM"),
            Self::Gemma3 => ("gemma3_text", "Gemma3ForCausalLM"),
        }
    }

    /// The kind of a `model_type`.
    pub(super) fn of_model_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.names().0 == name)
    }

    /// The kind of a GGUF file's `general.architecture`; files of Mistral say `llama`.
    pub(crate) fn of_architecture(name: &str) -> Option<Self> {
        match name {
            "mistral" | "gemma3_text" => None,
            "gemma3" => Some(Self::Gemma3),
            _ => Self::of_model_type(name),
        }
    }

    pub(crate) fn is_gemma(self) -> bool {
        matches!(self, Self::Gemma2 | Self::Gemma3)
    }

    pub(crate) fn has_qk_norm(self) -> bool {
        matches!(self, Self::Qwen3 | Self::Gemma3)
    }

    pub(super) fn defaults(self) -> Defaults {
        let (context, kv_heads, head_dim, rope_theta) = match self {
            Self::Llama => (2048, None, None, 1e4),
            Self::Mistral => (131_072, Some(8), None, 1e4),
            Self::Qwen2 => (32_768, Some(32), None, 1e4),
            Self::Qwen3 => (32_768, Some(32), Some(128), 1e4),
            Self::SmolLm3 => (32_768, Some(4), None, 2e6),
            Self::Gemma2 => (8192, Some(4), Some(256), 1e4),
            Self::Gemma3 => (131_072, Some(4), Some(256), 1e6),
        };
        let tied_head = self == Self::SmolLm3 || self.is_gemma();
        Defaults { context, kv_heads, head_dim, rope_theta, tied_head }
    }

    /// The architecture that computes what a configuration says: the plainest one.
    ///
    /// # Errors
    ///
    /// [`LoadError::Config`] for a combination that no architecture has.
    pub(super) fn of(config: &LlamaConfig) -> Result<Self, LoadError> {
        let windowed = config.attention.iter().filter(|layer| layer.windowed).count();
        let has_nope = config.attention.iter().any(|layer| !layer.rotary);
        let kind = match (&config.gemma, config.qk_norm) {
            (Some(_), true) => Self::Gemma3,
            (Some(_), false) => Self::Gemma2,
            (None, true) => Self::Qwen3,
            (None, false) if has_nope => Self::SmolLm3,
            (None, false) if config.attention_bias => Self::Qwen2,
            (None, false) if windowed == 0 => Self::Llama,
            (None, false) if windowed == config.layers => Self::Mistral,
            (None, false) => Self::SmolLm3,
        };
        let name = kind.names().0;
        if config.attention_bias && kind != Self::Qwen2 {
            return Err(LoadError::config("attention_bias", true, format!("false in a model of {name}")));
        }
        if has_nope && kind != Self::SmolLm3 {
            return Err(LoadError::config("rotary", false, format!("true in all layers of a model of {name}")));
        }
        let own_theta = config.window.and_then(|window| window.rope_theta);
        match own_theta {
            Some(theta) if kind != Self::Gemma3 => {
                Err(LoadError::config("rope_theta of window", theta, format!("none in a model of {name}")))
            }
            None if kind == Self::Gemma3 && windowed > 0 => {
                Err(LoadError::config("rope_theta of window", "none", format!("a number in a model of {name}")))
            }
            _ => Ok(kind),
        }
    }
}
