//! Checks that weights belong to a model, by their headers alone.

use super::super::config::ModelConfig;
use super::super::error::LoadError;
use super::Weights;
use std::collections::BTreeSet;

const HEAD: &str = "lm_head.weight";

impl Weights {
    /// Whether the mixes of time mixing of an RWKV-7 model are the rows of one tensor.
    pub(crate) fn has_fused_mixes(&self) -> bool {
        self.shape("model.layers.0.attn.x_x").is_some()
    }

    /// Checks that all tensors of the configuration exist, with its shapes and with readable types, and no others that would change the
    /// result. Reads and allocates nothing for a tensor, and stops at the first missing one.
    pub(crate) fn check(&self, config: &ModelConfig) -> Result<(), LoadError> {
        let mut left: BTreeSet<&str> = self.names().collect();
        for (name, shape) in config.tensors_of(self.has_fused_mixes()) {
            self.find(&name, &shape)?;
            left.remove(name.as_str());
        }
        // A stored copy of the embedding as the head is compared when both are read.
        let is_harmless = |name: &str| {
            name.ends_with("rotary_emb.inv_freq")
                || name == "rope_freqs.weight"
                || name == HEAD && config.tied_embeddings().is_some()
        };
        match left.into_iter().find(|name| !is_harmless(name)) {
            Some(name) => Err(self.unread(name, "use weights and a configuration of one model")),
            None => Ok(()),
        }
    }

    /// Checks that a tied output layer, if it is stored, has the embedding's values.
    pub(crate) fn check_tied_head(&self, config: &ModelConfig) -> Result<(), LoadError> {
        let Some((embedding, shape)) = config.tied_embeddings().zip(self.shape(HEAD)) else { return Ok(()) };
        let bits = |name: &str| -> Result<Vec<u32>, LoadError> {
            Ok(self.read(name, shape)?.into_iter().map(f32::to_bits).collect())
        };
        match bits(HEAD)? == bits(embedding)? {
            true => Ok(()),
            false => {
                Err(self.unread(HEAD, "its values differ from the embedding's, to which tie_word_embeddings ties it"))
            }
        }
    }

    fn unread(&self, name: &str, expected: &'static str) -> LoadError {
        LoadError::UnreadTensor { path: self.path.clone(), name: name.to_owned(), expected }
    }
}
