//! Names of checkpoint folders, of drafts, and of folders that are being replaced or removed.

use crate::durable::DRAFT;
use std::path::{Path, PathBuf};

pub(super) const PREFIX: &str = "generation-";

/// A hidden folder next to the checkpoints: `.generation-N.replaced` and so on. The name of a draft also has a random part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Not complete yet.
    Draft,
    /// Complete, and about to be replaced by another of the same generation.
    Replaced,
    /// Being removed.
    Removed,
}

impl Hidden {
    const ALL: [Self; 3] = [Self::Draft, Self::Replaced, Self::Removed];

    fn suffix(self) -> &'static str {
        match self {
            Self::Draft => DRAFT,
            Self::Replaced => ".replaced",
            Self::Removed => ".removed",
        }
    }

    /// The folder of the checkpoint `name`.
    pub fn path(self, folder: &Path, name: &str) -> PathBuf {
        folder.join(format!(".{name}{}", self.suffix()))
    }

    /// The kind of a folder of this name, and its checkpoint.
    pub fn parse(name: &str) -> Option<(Self, &str)> {
        let name = name.strip_prefix('.')?;
        let of = |hidden: Self| {
            let name = name.strip_suffix(hidden.suffix())?;
            Some((hidden, if hidden == Self::Draft { name.split('.').next()? } else { name }))
        };
        Self::ALL.into_iter().find_map(of).filter(|(_, name)| generation_of(name).is_some())
    }
}

/// The generation of the checkpoint whose folder has this name.
pub(crate) fn generation_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}
