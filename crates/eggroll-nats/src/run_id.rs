//! The identity of a run.

use crate::config::NatsConfig;
use eggroll_run::distribution::RunStart;
use sha2::{Digest, Sha256};
use std::fmt;

/// The identity of a run in its messages: a hash of name, settings, the version of the score, and the contents of
/// [`RunStart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId([u8; 8]);

impl RunId {
    pub fn of(config: &NatsConfig, start: &RunStart<'_>) -> Self {
        let NatsConfig { run, slice_members, version, .. } = config;
        let parts = start.of_run.iter().map(|(what, text)| format!("{what} {} {text}", text.len()));
        let common: String = parts.collect();
        Self::of_text(&format!("{run} {slice_members} {} {version} {:?} {common}", version.len(), start.arithmetic))
    }

    pub fn of_text(text: &str) -> Self {
        Self(first(&Sha256::digest(text)))
    }

    /// The check of a message of this run.
    pub fn check(&self, bytes: &[u8]) -> [u8; 8] {
        first(&Sha256::new().chain_update(self.0).chain_update(bytes).finalize())
    }
}

fn first(digest: &[u8]) -> [u8; 8] {
    std::array::from_fn(|i| digest[i])
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
