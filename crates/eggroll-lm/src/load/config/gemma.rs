//! Settings that only models of the Gemma family have.

use super::super::error::LoadError;
use super::super::kind::Kind;
use super::bounds::{positive, positive_number};
use super::fields::ConfigFields;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Gemma-2 and Gemma-3. The outputs of attention and feed-forward part are also normalized, before they are added. The feed-forward part is
/// gated by GELU in place of SiLU; embeddings are multiplied by `√hidden_size`. Files hold gains of normalizations minus 1.
///
/// # References
///
/// Gemma Team, [Gemma 2](https://arxiv.org/abs/2408.00118), 2024; [Gemma 3](https://arxiv.org/abs/2503.19786), 2025.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GemmaConfig {
    /// Scores of attention are `q·k` divided by the root of this, in place of the root of `head_dim`.
    pub query_pre_attn_scalar: usize,
    /// `c` of scores of attention `c·tanh(score/c)`; `None` for scores as they are.
    pub attention_cap: Option<f64>,
    /// `c` of logits `c·tanh(logit/c)`; `None` for logits as they are.
    pub logit_cap: Option<f64>,
}

impl GemmaConfig {
    pub(super) fn from_fields(fields: &ConfigFields, kind: Kind) -> Result<Option<Self>, LoadError> {
        // Defaults of missing fields; null means no cap.
        let [attention, logit] = match kind {
            Kind::Gemma2 => [Some(50.0), Some(30.0)],
            Kind::Gemma3 => [None, None],
            _ => return Ok(None),
        };
        let cap =
            |key: &str, missing: Option<f64>| Ok(fields.number(key)?.or(missing.filter(|_| !fields.is_named(key))));
        Ok(Some(Self {
            query_pre_attn_scalar: fields.optional_size("query_pre_attn_scalar")?.unwrap_or(256),
            attention_cap: cap("attn_logit_softcapping", attention)?,
            logit_cap: cap("final_logit_softcapping", logit)?,
        }))
    }

    pub(super) fn validate(&self) -> Result<(), LoadError> {
        positive(&[("query_pre_attn_scalar", self.query_pre_attn_scalar)])?;
        let caps = [("attn_logit_softcapping", self.attention_cap), ("final_logit_softcapping", self.logit_cap)];
        caps.into_iter().try_for_each(|(field, cap)| cap.map_or(Ok(()), |cap| positive_number(field, cap)))
    }

    /// Fields of `config.json`.
    pub(super) fn to_json(self) -> Map<String, Value> {
        let fields = json!({
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": self.query_pre_attn_scalar,
            "attn_logit_softcapping": self.attention_cap,
            "final_logit_softcapping": self.logit_cap,
        });
        fields.as_object().cloned().unwrap_or_default()
    }
}
