//! Keys in files: `RUN.coordinator.key`, `RUN.workers.key` for all workers, `RUN.NODE.key` for one.

use super::config::{NatsConfig, Trust, is_token};
use super::error::NatsError;
use super::keys::{CoordinatorKey, WorkerKey};
use super::secret_files::{check_folder, read_secret, write_secret};
use crate::digest::hex;
use secrecy::{ExposeSecret, SecretBox};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

const FORMAT: u32 = 1;

/// A key as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    eggroll_key: u32,
    run: String,
    of: Holder,
    /// Whose it is, if it is one worker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The coordinator's public key, if it is a worker's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coordinator: Option<String>,
    secret: String,
}

impl Drop for File {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Holder {
    Coordinator,
    Worker,
    Workers,
}

fn to_text(file: &File) -> Zeroizing<String> {
    Zeroizing::new(serde_json::to_string_pretty(file).expect("has nothing that cannot be written") + "\n")
}

fn parse(path: &Path, run: &str) -> Result<File, NatsError> {
    let refuse = |reason: String| NatsError::Key { path: path.to_owned(), reason };
    check_folder(crate::durable::parent(path))?;
    let text = read_secret(path)?;
    // The parser's words may have the secret in them.
    let file: File = serde_json::from_str(&text)
        .map_err(|error| refuse(format!("line {}: this is no key of eggroll", error.line())))?;
    if file.eggroll_key != FORMAT {
        return Err(refuse(format!("a key of format {}; this program reads {FORMAT}", file.eggroll_key)));
    }
    if file.run != run {
        return Err(refuse(format!("a key of the run {:?}, not of {run:?}", file.run)));
    }
    Ok(file)
}

fn bytes(path: &Path, what: &str, text: Option<&str>) -> Result<Box<[u8; 32]>, NatsError> {
    let mut bytes = Box::new([0; 32]);
    let digits = text.unwrap_or_default().as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let is_whole = digits.len() == 64
        && bytes.iter_mut().zip(digits.chunks(2)).all(|(byte, pair)| match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => {
                *byte = high << 4 | low;
                true
            }
            _ => false,
        });
    match is_whole {
        true => Ok(bytes),
        false => {
            let reason = format!("{what} must be 64 hexadecimal digits, and there are {} bytes", digits.len());
            Err(NatsError::Key { path: path.to_owned(), reason })
        }
    }
}

impl CoordinatorKey {
    /// Reads a file, or makes it with a new key if there is none.
    ///
    /// # Errors
    ///
    /// [`NatsError::Key`].
    pub fn open_file(path: &Path, run: &str) -> Result<Self, NatsError> {
        if !path.exists() {
            let key = Self::random(run)?;
            let secret = hex(key.root().expose_secret());
            let (of, run) = (Holder::Coordinator, run.to_owned());
            let file = File { eggroll_key: FORMAT, run, of, node: None, coordinator: None, secret };
            if write_secret(path, &to_text(&file), false)? {
                return Ok(key);
            }
        }
        let file = parse(path, run)?;
        if file.of != Holder::Coordinator {
            let reason = "expected the coordinator's key, found a worker's".to_owned();
            return Err(NatsError::Key { path: path.to_owned(), reason });
        }
        Ok(Self::of_root(run, SecretBox::new(bytes(path, "the secret", Some(&file.secret))?)))
    }
}

impl WorkerKey {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`NatsError::Key`].
    pub fn read_file(path: &Path, run: &str) -> Result<Self, NatsError> {
        let refuse = |reason: &str| NatsError::Key { path: path.to_owned(), reason: reason.to_owned() };
        let mut file = parse(path, run)?;
        if file.of == Holder::Coordinator {
            return Err(refuse("the coordinator's key, which no worker may have: give it the file of the workers"));
        }
        if (file.of == Holder::Worker) != file.node.is_some() {
            return Err(refuse("the key of one worker has the name of its node, and that of all has none"));
        }
        file.node.as_deref().map_or(Ok(()), |node| is_token("node", node))?;
        let coordinator = bytes(path, "the public key", file.coordinator.as_deref())?;
        let secret = SecretBox::new(bytes(path, "the secret", Some(&file.secret))?);
        Self::of_parts(run, file.node.take(), &coordinator, secret)
            .ok_or_else(|| refuse("its public key is not a valid Ed25519 key"))
    }

    /// Writes it to a file that nobody but its owner may read, in place of one that is there.
    ///
    /// # Errors
    ///
    /// [`NatsError::Key`].
    pub fn write_file(&self, path: &Path) -> Result<(), NatsError> {
        let of = if self.node().is_some() { Holder::Worker } else { Holder::Workers };
        let file = File {
            eggroll_key: FORMAT,
            run: self.run().to_owned(),
            of,
            node: self.node().map(str::to_owned),
            coordinator: Some(hex(&self.coordinator())),
            secret: hex(self.secret().expose_secret()),
        };
        write_secret(path, &to_text(&file), true).map(drop)
    }
}

fn file_of(config: &NatsConfig, holder: &str) -> PathBuf {
    config.keys.join(format!("{}.{holder}.key", config.run))
}

/// Makes the coordinator's key of a run in the folder [`NatsConfig::keys`], if it has none yet, and the files to hand out to workers: one for
/// all of them where they are trusted, and one for each of [`NatsConfig::nodes`]. [`Coordinator::connect`](super::Coordinator::connect) does
/// the same.
///
/// # Errors
///
/// [`NatsError::Key`], [`NatsError::Setting`].
pub fn make_keys(config: &NatsConfig) -> Result<CoordinatorKey, NatsError> {
    config.validate()?;
    if matches!(config.trust, Trust::Untrusted { .. }) && config.nodes.is_empty() {
        let rule = "the names of the workers, where they are not trusted";
        return Err(NatsError::Setting { what: "nodes", rule, value: "empty".to_owned() });
    }
    let key = CoordinatorKey::open_file(&file_of(config, "coordinator"), &config.run)?;
    let workers = file_of(config, "workers");
    match config.trust {
        Trust::Trusted => key.workers().write_file(&workers)?,
        Trust::Untrusted { .. } if workers.exists() => {
            let reason =
                "a key with which everybody is any worker, made when they were trusted: use another folder for keys";
            return Err(NatsError::Key { path: workers, reason: reason.to_owned() });
        }
        Trust::Untrusted { .. } => {}
    }
    for node in &config.nodes {
        key.worker(node)?.write_file(&file_of(config, node))?;
    }
    Ok(key)
}

/// Refuses a node that is named as a file which is no node's.
fn is_nobodys_file(node: &str) -> Result<(), NatsError> {
    const RULE: &str = "another name for a worker than \"coordinator\" and \"workers\"";
    match node {
        "coordinator" | "workers" => Err(NatsError::Setting { what: "node", rule: RULE, value: format!("{node:?}") }),
        _ => Ok(()),
    }
}

/// A worker's key: that of the file, or those in the folder of its node or of all workers; `None` if the coordinator has not made them yet.
pub(super) fn find_key(config: &NatsConfig) -> Result<Option<WorkerKey>, NatsError> {
    let named = config.keys.is_file() || config.keys.extension().is_some_and(|extension| extension == "key");
    if named && !config.keys.exists() {
        let reason = "there is no such file: the coordinator makes it in its folder of keys, copy it here".to_owned();
        return Err(NatsError::Key { path: config.keys.clone(), reason });
    }
    if named {
        return WorkerKey::read_file(&config.keys, &config.run).map(Some);
    }
    is_nobodys_file(&config.node)?;
    let files = [file_of(config, &config.node), file_of(config, "workers")];
    files.iter().find(|file| file.exists()).map(|file| WorkerKey::read_file(file, &config.run)).transpose()
}

#[cfg(test)]
mod tests;
