//! Everything that can go wrong between files and a model, with the values in it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model cannot be loaded, saved or used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or folder that the system cannot open, read or write.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why the system refused.
        source: io::Error,
    },
    /// A path with no model.
    #[error(
        "no model in {}: found {found}, expected a folder with model.safetensors or model.safetensors.index.json, a \
         .safetensors file or a .gguf file", path.display()
    )]
    NoModel {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// A file of a model's folder that is needed.
    #[error("{} is missing: {advice}", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// A file that breaks the rules of its format: damaged, cut off or of another kind.
    #[error("{} is not valid {format}: {reason}; download or convert it again", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
        /// What was found and what was expected.
        reason: String,
    },
    /// A valid file that needs an unsupported feature.
    #[error("{}: unsupported {what} {found}; supported: {supported}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The setting.
        what: String,
        /// Its value.
        found: String,
        /// Values that work.
        supported: String,
    },
    /// A tensor that the weights do not have.
    #[error("{} has no tensor \"{name}\" among its {tensors}{}", path.display(), did_you_mean(.similar))]
    MissingTensor {
        /// Where the weights come from.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Number of tensors that are there.
        tensors: usize,
        /// Names that end in the same way.
        similar: Vec<String>,
    },
    /// A tensor of another shape.
    #[error(
        "tensor \"{name}\" of {} has shape {found:?}, the model expects {expected:?}: the weights and the configuration \
         belong to different models", path.display()
    )]
    Shape {
        /// Where the weights come from.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape asked for.
        expected: Vec<usize>,
    },
    /// A tensor that the model does not read: it would not compute the trained function.
    #[error(
        "{} has tensor \"{name}\", which a model of this configuration does not read: {expected}", path.display()
    )]
    UnreadTensor {
        /// Where the weights come from.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The expected tensors.
        expected: &'static str,
    },
    /// An invalid configuration of a model.
    #[error("invalid configuration of a model: {field} is {found}, expected {expected}")]
    Config {
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// Values that work.
        expected: String,
    },
    /// A tokenizer that cannot be built, or a text that it cannot split.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// A chat template that cannot be parsed or rendered.
    #[error("chat template: {0}")]
    Template(String),
    /// A tensor that cannot be saved.
    #[error("cannot save tensor \"{name}\": {reason}")]
    Save {
        /// The tensor.
        name: String,
        /// What was found and what was expected.
        reason: String,
    },
}

eggroll_core::debug_is_message!(LoadError);

fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) }
}

impl LoadError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, action, source }
    }

    pub(crate) fn malformed(path: &Path, format: &'static str, reason: impl ToString) -> Self {
        Self::Malformed { path: path.to_owned(), format, reason: reason.to_string() }
    }

    pub(crate) fn unsupported(
        path: &Path,
        what: impl ToString,
        found: impl ToString,
        supported: impl ToString,
    ) -> Self {
        Self::Unsupported {
            path: path.to_owned(),
            what: what.to_string(),
            found: found.to_string(),
            supported: supported.to_string(),
        }
    }

    pub(crate) fn config(field: impl ToString, found: impl ToString, expected: impl ToString) -> Self {
        Self::Config { field: field.to_string(), found: found.to_string(), expected: expected.to_string() }
    }
}
