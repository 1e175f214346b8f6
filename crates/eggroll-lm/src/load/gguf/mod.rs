//! The GGUF format of llama.cpp: one file with the weights, the configuration, the tokenizer and the chat template.
//!
//! # References
//!
//! The specification, `docs/gguf.md` in <https://github.com/ggml-org/ggml>.

mod names;
mod parse;
mod value;
mod write;

pub(crate) use names::hugging_face;
pub(crate) use parse::{Layout, TensorInfo};
pub(crate) use value::Metadata;
pub(crate) use write::write;

use super::error::LoadError;
use super::source::SourceFile;
use std::path::Path;

/// An open GGUF file.
pub(crate) struct Gguf {
    pub(crate) source: SourceFile,
    pub(crate) metadata: Metadata,
    pub(crate) layout: Layout,
}

impl Gguf {
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let source = SourceFile::open(path)?;
        let (metadata, layout) = parse::parse(&source)?;
        if metadata.size("split.count")?.is_some_and(|parts| parts > 1) {
            let advice = "one file: merge the parts with llama-gguf-split --merge";
            return Err(LoadError::unsupported(path, "GGUF", "of several files", advice));
        }
        Ok(Self { source, metadata, layout })
    }

    /// The architecture that the file names.
    pub(crate) fn architecture(&self) -> Result<&str, LoadError> {
        self.metadata.required("general.architecture", self.metadata.text("general.architecture")?)
    }

    /// Whether a tensor, by its name in the file, is there.
    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.layout.tensors.iter().find(|tensor| tensor.name == name)
    }
}
