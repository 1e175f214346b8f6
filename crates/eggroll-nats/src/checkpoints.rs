//! Checkpoints in the server's object store, which keeps a digest of every file.

use crate::connection::{AttemptFailure, Connection, for_now};
use crate::error::NatsError;
use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Bytes of a file in one message, if the server accepts messages of this size.
const CHUNK: usize = 128 << 10;
/// The object that names the latest checkpoint.
const LATEST: &str = "latest";

/// The latest checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latest {
    pub generation: u64,
    /// Names of its files, in objects `GENERATION/NAME`.
    files: Vec<String>,
}

impl Latest {
    fn object(&self, file: &str) -> String {
        format!("{}/{file}", self.generation)
    }
}

/// Puts a checkpoint's folder on the server and makes it the latest; returns the previous one.
pub fn offer(link: &Connection, generation: u64, folder: &Path) -> Result<Option<Latest>, NatsError> {
    let io = |path: &Path, source: io::Error| eggroll_run::Error::Io { path: path.to_owned(), source };
    let entries =
        fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|error| io(folder, error))?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let latest = Latest { generation, files: paths.iter().map(name).collect() };
    // A checkpoint that cannot be read is not dropped.
    let before = link.runtime.block_on(find_now(link)).ok().flatten();
    for (path, file) in paths.iter().zip(&latest.files) {
        let mut content = Ok(());
        link.persist("offering a checkpoint", async || {
            let store = link.store().await?;
            match File::open(path).await {
                Ok(mut bytes) => {
                    let chunk_size = Some(CHUNK.min(link.message_bytes()));
                    let object = ObjectMetadata { name: latest.object(file), chunk_size, ..ObjectMetadata::default() };
                    store.put(object, &mut bytes).await.map(drop).map_err(for_now)
                }
                Err(error) => {
                    content = Err(io(path, error));
                    Ok(())
                }
            }
        })?;
        content?;
    }
    let json = serde_json::to_vec(&latest).expect("plain names");
    link.persist("offering a checkpoint", async || {
        let store = link.store().await?;
        store.put(LATEST, &mut &json[..]).await.map(drop).map_err(for_now)
    })?;
    // One of the same generation has the same names.
    Ok(before.filter(|before| before.generation != latest.generation))
}

/// Drops a checkpoint from the server.
pub fn drop_checkpoint(link: &Connection, old: &Latest) -> Result<(), NatsError> {
    link.persist("dropping a checkpoint", async || {
        let store = link.store().await?;
        for file in &old.files {
            // It may be gone.
            let _ = store.delete(old.object(file)).await;
        }
        Ok(())
    })
}

/// The latest checkpoint on the server.
async fn find_now(link: &Connection) -> Result<Option<Latest>, AttemptFailure> {
    if !link.config.offer_checkpoints {
        return Ok(None);
    }
    let mut object = match link.store().await?.get(LATEST).await {
        Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
        found => found.map_err(for_now)?,
    };
    let mut json = Vec::new();
    read(link, &mut object, &mut json).await.map_err(for_now)?;
    serde_json::from_slice(&json).map(Some).map_err(|error| refuse(0, &error))
}

/// Reads an object. Without a limit, a read would never end if a part is missing or the server restarts.
async fn read(
    link: &Connection,
    object: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let len = timeout(link.answer(), object.read(&mut buffer)).await??;
        if len == 0 {
            return output.flush().await;
        }
        output.write_all(&buffer[..len]).await?;
    }
}

/// Copies the latest checkpoint to a folder, if it is later than `generation`; its generation, and the folder.
pub fn download(link: &Connection, generation: u64) -> Result<Option<(u64, TempDir)>, NatsError> {
    // A checkpoint that is dropped while it is copied has a successor.
    link.persist("copying a checkpoint", async || copy_now(link, generation).await)
}

/// The generation of the checkpoint that can be copied at once, if there is one.
pub fn readable(link: &Connection) -> Option<u64> {
    let copied = link.runtime.block_on(copy_now(link, 0));
    copied.ok().flatten().map(|(generation, _)| generation)
}

async fn copy_now(link: &Connection, generation: u64) -> Result<Option<(u64, TempDir)>, AttemptFailure> {
    let Some(latest) = find_now(link).await?.filter(|latest| latest.generation > generation) else { return Ok(None) };
    let refuse = |error: &dyn Display| refuse(latest.generation, error);
    let folder = tempfile::Builder::new().prefix("eggroll-").tempdir().map_err(|error| refuse(&error))?;
    let store = link.store().await?;
    for file in &latest.files {
        // No name leads out of the folder.
        if Path::new(file).file_name().is_none_or(|name| name != file.as_str()) {
            return Err(refuse(&format!("{file:?} is not the name of a file")));
        }
        let mut object = store.get(latest.object(file)).await.map_err(for_now)?;
        let mut output = File::create_new(folder.path().join(file)).await.map_err(|error| refuse(&error))?;
        read(link, &mut object, &mut output).await.map_err(|error| for_now(format!("{file}: {error}")))?;
        output.sync_all().await.map_err(|error| refuse(&error))?;
    }
    Ok(Some((latest.generation, folder)))
}

fn refuse(generation: u64, error: &dyn Display) -> AttemptFailure {
    AttemptFailure::ForGood(NatsError::Checkpoint { generation, reason: error.to_string() })
}
