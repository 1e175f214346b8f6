//! The architectures that a transformer of the Llama family has in files.

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

/// Defaults of transformers for missing fields of `config.json`.
pub(crate) struct Defaults {
    pub context: usize,
    /// Heads of keys; `None` for the number of query heads.
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
    pub(crate) fn names(self) -> (&'static str, &'static str) {
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
    pub(crate) fn of_model_type(name: &str) -> Option<Self> {
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

    pub(crate) fn defaults(self) -> Defaults {
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
}
