//! The files of a model.

use super::error::LoadError;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a model at a path.
pub(crate) enum ModelFiles {
    /// One file with everything.
    Gguf(PathBuf),
    /// Weights in one file, next to the other files of a folder.
    File { folder: PathBuf, weights: PathBuf },
    /// Weights in several files of a folder.
    Index { folder: PathBuf, index: PathBuf },
}

impl ModelFiles {
    pub(crate) fn find(path: &Path) -> Result<Self, LoadError> {
        let none = |found: String| Err(LoadError::NoModel { path: path.to_owned(), found });
        if path.is_dir() {
            let (weights, index) = (path.join("model.safetensors"), path.join("model.safetensors.index.json"));
            return match () {
                () if weights.is_file() => Ok(Self::File { folder: path.to_owned(), weights }),
                () if index.is_file() => Ok(Self::Index { folder: path.to_owned(), index }),
                () => none(contents(path)?),
            };
        }
        let folder = || path.parent().map(Path::to_owned).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match () {
            () if !path.exists() => none("nothing".into()),
            () if name.ends_with(".gguf") => Ok(Self::Gguf(path.to_owned())),
            () if name.ends_with(".safetensors") => Ok(Self::File { folder: folder(), weights: path.to_owned() }),
            () if name.ends_with(".safetensors.index.json") => {
                Ok(Self::Index { folder: folder(), index: path.to_owned() })
            }
            () => none("a file with another ending".into()),
        }
    }
}

/// The first names of a folder, for a message.
fn contents(folder: &Path) -> Result<String, LoadError> {
    let entries = fs::read_dir(folder).map_err(LoadError::io(folder, "list"))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let more = if names.len() > 8 { ", …" } else { "" };
    names.truncate(8);
    Ok(if names.is_empty() { "an empty folder".into() } else { format!("a folder with {}{more}", names.join(", ")) })
}
