//! Checkpoints in the server's object store, which keeps a digest of every file.

use crate::connection::{Connection, for_now};
use crate::error::NatsError;
use async_nats::jetstream::object_store::ObjectMetadata;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Bytes of a file that a message carries, if the server takes as many.
const CHUNK: usize = 128 << 10;
/// The object that says which checkpoint is the latest.
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

/// Puts a checkpoint's folder on the server and makes it the latest; returns the one before.
pub fn offer(link: &Connection, generation: u64, folder: &Path) -> Result<Option<Latest>, NatsError> {
    let io = |path: &Path, source: io::Error| eggroll_run::Error::Io { path: path.to_owned(), source };
    let entries =
        fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|error| io(folder, error))?;
    let paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let latest = Latest { generation, files: paths.iter().map(name).collect() };
    let before = find(link)?;
    for (path, file) in paths.iter().zip(&latest.files) {
        let mut content = Ok(());
        link.persist("offering a checkpoint", async || {
            let store = link.store().await?;
            match tokio::fs::File::open(path).await {
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
    Ok(before.filter(|before| *before != latest))
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
pub fn find(link: &Connection) -> Result<Option<Latest>, NatsError> {
    use async_nats::jetstream::object_store::GetErrorKind;
    if !link.config.offer_checkpoints {
        return Ok(None);
    }
    let found = link.persist("looking for a checkpoint", async || {
        let store = link.store().await?;
        match store.get(LATEST).await {
            Ok(mut object) => read(&mut object).await.map(Some).map_err(for_now),
            Err(error) if error.kind() == GetErrorKind::NotFound => Ok(None),
            Err(error) => Err(for_now(error)),
        }
    })?;
    let parse = |bytes: Vec<u8>| {
        serde_json::from_slice::<Latest>(&bytes)
            .map_err(|error| NatsError::Checkpoint { generation: 0, reason: error.to_string() })
    };
    found.map(parse).transpose()
}

async fn read(object: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let mut bytes = Vec::new();
    object.read_to_end(&mut bytes).await.map(|_| bytes)
}

/// Copies the latest checkpoint to a folder, if it is later than `generation`; its generation, and the folder.
pub fn download(link: &Connection, generation: u64) -> Result<Option<(u64, TempDir)>, NatsError> {
    loop {
        let Some(latest) = find(link)?.filter(|latest| latest.generation > generation) else { return Ok(None) };
        match copy(link, &latest) {
            // One that was dropped while it was copied has a successor.
            Err(_) if find(link)?.is_some_and(|now| now != latest) => {}
            copied => return copied.map(|folder| Some((latest.generation, folder))),
        }
    }
}

fn copy(link: &Connection, latest: &Latest) -> Result<TempDir, NatsError> {
    let refuse = |reason: String| NatsError::Checkpoint { generation: latest.generation, reason };
    let folder = tempfile::Builder::new().prefix("eggroll-").tempdir().map_err(|error| refuse(error.to_string()))?;
    for file in &latest.files {
        // No name leads out of the folder.
        if Path::new(file).file_name().is_none_or(|name| name != file.as_str()) {
            return Err(refuse(format!("{file:?} is not the name of a file")));
        }
        let path = folder.path().join(file);
        let copied = link.runtime.block_on(async {
            let store = link.context.get_object_store(&link.names.bucket).await.map_err(|error| error.to_string())?;
            let mut object = store.get(latest.object(file)).await.map_err(|error| error.to_string())?;
            let mut output = tokio::fs::File::create_new(&path).await.map_err(|error| error.to_string())?;
            tokio::io::copy(&mut object, &mut output).await.map_err(|error| error.to_string())?;
            output.sync_all().await.map_err(|error| error.to_string())
        });
        copied.map_err(|reason| refuse(format!("{file}: {reason}")))?;
    }
    Ok(folder)
}
