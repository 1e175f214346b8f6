//! Which checkpoint is the latest, and what it consists of.

use super::super::run_id::RunId;
use super::fields::{FieldReader, MANIFEST, Undecodable, head, open, sealed};

/// Files of a checkpoint at most.
const FILES: usize = 64;
/// Bytes of a file's name at most.
const NAME: usize = 64;

/// A checkpoint on the server: its files one after the other, in parts. As bytes: generation, draft, first: u64, parts: u32, sum: 32 bytes,
/// files: u8, for each the length of its name: u8, its name and its length: u64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The generation.
    pub generation: u64,
    /// A number that no other checkpoint has: parts are found by it.
    pub draft: u64,
    /// Place of the first part in the stream.
    pub first: u64,
    /// How many parts there are.
    pub parts: u32,
    /// SHA-256 of all files, one after the other.
    pub sum: [u8; 32],
    /// Names and lengths of the files.
    pub files: Vec<(String, u64)>,
}

impl Manifest {
    /// Bytes of all files; `None` if no number holds it.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().try_fold(0u64, |sum, (_, len)| sum.checked_add(*len))
    }

    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        let mut bytes = head(MANIFEST, run);
        [self.generation, self.draft, self.first].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.extend(self.parts.to_le_bytes());
        bytes.extend(self.sum);
        bytes.push(self.files.len() as u8);
        for (name, len) in &self.files {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
            bytes.extend(len.to_le_bytes());
        }
        sealed(bytes)
    }

    /// Reads a message. Names are those of plain files: none leads out of a folder.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let file = |fields: &mut FieldReader| {
            let [len] = fields.take()?;
            let (name, rest) = fields.0.split_at_checked(usize::from(len))?;
            fields.0 = rest;
            let name = std::str::from_utf8(name).ok().filter(|name| is_plain(name))?;
            Some((name.to_owned(), fields.long()?))
        };
        let read = |fields: &mut FieldReader| {
            let [generation, draft, first] = [fields.long()?, fields.long()?, fields.long()?];
            let (parts, sum, [count]) = (fields.word()?, fields.take()?, fields.take()?);
            let files = (0..count).map(|_| file(fields)).collect::<Option<Vec<_>>>()?;
            (files.len() <= FILES).then_some(Self { generation, draft, first, parts, sum, files })
        };
        let manifest = read(&mut open(bytes, MANIFEST, run)?).ok_or(Undecodable::Garbage)?;
        if manifest.encode(run) == bytes { Ok(manifest) } else { Err(Undecodable::Garbage) }
    }
}

/// Whether a name is that of a file in its folder.
pub(in super::super) fn is_plain(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=NAME).contains(&name.len()) && !name.starts_with('.') && name.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn files_stay_in_their_folder() {
        assert!(["model.bpk", "strategy.json", "SHA256SUMS"].into_iter().all(is_plain));
        for name in ["../model.bpk", "/etc/passwd", ".hidden", "a/b", "", "..", "a\\b", "a b", "é", &"a".repeat(65)] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
