//! Checkpoints in the object store: every file of a checkpoint's folder is an object, and `latest` names the folder.

use super::config::NatsConfig;
use super::connection::{Connection, Failure, for_now};
use super::error::NatsError;
use super::run_id::RunId;
use crate::checkpoint::{self, generation_of};
use crate::error::Error;
use async_nats::jetstream::object_store::{self, ObjectStore};
use burn::module::Module;
use eggroll_train::EvolutionStrategy;
use futures_util::StreamExt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// The object that names the latest checkpoint.
const LATEST: &str = "latest";
/// The file that lists all others.
const SUMS: &str = "SHA256SUMS";
/// Bytes of a name, and of a list of files.
const SMALL: u64 = 64 << 10;
/// How long no byte of an object may come. Of one that is replaced while it is read, none comes any more.
const SILENCE: Duration = Duration::from_secs(10);

/// Puts a checkpoint's folder into the store, makes it the latest, and drops all but the one before.
pub(super) fn offer(link: &Connection, config: &NatsConfig, folder: &Path) -> Result<(), NatsError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let refuse = |reason: &str| NatsError::Checkpoint { name: name.clone(), reason: reason.to_owned() };
    generation_of(&name).ok_or_else(|| refuse("this is no checkpoint's folder"))?;
    let read = |path: &Path| fs::read(path).map_err(|error| NatsError::from(Error::io(path)(error)));
    let store = link.persist("making the object store", async || create(link, config).await)?;
    let before = latest(link, &store)?;
    let sums = read(&folder.join(SUMS))?;
    for file in files(&sums).ok_or_else(|| refuse("its list of files cannot be read"))? {
        put(link, &store, &format!("{name}/{file}"), &read(&folder.join(&file))?)?;
    }
    put(link, &store, &format!("{name}/{SUMS}"), &sums)?;
    put(link, &store, LATEST, name.as_bytes())?;
    let kept = [Some(name), before];
    link.persist("dropping old checkpoints", async || {
        let mut objects = store.list().await.map_err(for_now)?;
        while let Some(object) = objects.next().await {
            let object = object.map_err(for_now)?.name;
            let of = object.split_once('/').map(|(folder, _)| folder.to_owned());
            if of.is_some() && !kept.contains(&of) {
                store.delete(&object).await.map_err(for_now)?;
            }
        }
        Ok(())
    })
}

/// Loads the latest checkpoint into `model`, if it is of a later generation than `strategy`, of whose run it has to be.
pub(super) fn load<M: Module>(
    link: &Connection,
    config: &NatsConfig,
    strategy: &EvolutionStrategy,
    model: &M,
) -> Result<Option<(EvolutionStrategy, M)>, NatsError> {
    let Some(store) = link.runtime.block_on(link.context.get_object_store(&link.names.bucket)).ok() else {
        return Ok(None);
    };
    let expected = RunId::of(config, strategy)?;
    let scratch = scratch(config);
    let load = |name: &str| {
        let folder = scratch.join(name);
        download(link, config, &store, name, &folder)?;
        let loaded = checkpoint::load_under(&folder, Some(strategy.config()), model.clone())?;
        match RunId::of(config, &loaded.0)? {
            found if found == expected => Ok(loaded),
            found => Err(expected.refuse(config, &found)),
        }
    };
    loop {
        let later = |name: &String| generation_of(name) > Some(strategy.generation());
        let Some(name) = latest(link, &store)?.filter(later) else {
            return Ok(None);
        };
        let loaded = load(&name);
        // What is left behind is small, and in a folder for such.
        let _ = fs::remove_dir_all(&scratch);
        // One that was dropped while it was loaded has a successor.
        if loaded.is_ok() || latest(link, &store)?.as_ref() == Some(&name) {
            return loaded.map(Some);
        }
    }
}

/// A folder that no other worker uses, in this process or another.
fn scratch(config: &NatsConfig) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    config.scratch.join(format!("eggroll-{}-{}-{process}-{count}", config.run, config.node))
}

/// Copies a checkpoint's files to a folder.
fn download(
    link: &Connection,
    config: &NatsConfig,
    store: &ObjectStore,
    name: &str,
    folder: &Path,
) -> Result<(), NatsError> {
    let refuse = |reason: &str| NatsError::Checkpoint { name: name.to_owned(), reason: reason.to_owned() };
    let load = |file: &str, limit| {
        let bytes = get(link, store, &format!("{name}/{file}"), limit)?.ok_or_else(|| refuse("it is not whole"))?;
        let path = folder.join(file);
        fs::write(&path, &bytes).map_err(Error::io(&path))?;
        Ok::<_, NatsError>(bytes)
    };
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let sums = load(SUMS, SMALL)?;
    let mut left = config.checkpoint_bytes;
    for file in files(&sums).ok_or_else(|| refuse("its list of files cannot be read"))? {
        left -= load(&file, left)?.len() as u64;
    }
    Ok(())
}

async fn create(link: &Connection, config: &NatsConfig) -> Result<ObjectStore, Failure> {
    if let Ok(store) = link.context.get_object_store(&link.names.bucket).await {
        return Ok(store);
    }
    let bucket = link.names.bucket.clone();
    let store = object_store::Config { bucket, num_replicas: config.replicas, ..object_store::Config::default() };
    link.context.create_object_store(store).await.map_err(for_now)
}

/// The name of the latest checkpoint.
fn latest(link: &Connection, store: &ObjectStore) -> Result<Option<String>, NatsError> {
    let name = get(link, store, LATEST, SMALL)?.and_then(|name| String::from_utf8(name).ok());
    Ok(name.filter(|name| generation_of(name).is_some()))
}

/// The files of a list of checksums; `None` if one of them could stand outside the folder.
fn files(sums: &[u8]) -> Option<Vec<String>> {
    let plain = |name: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !name.is_empty() && !name.starts_with('.') && name.chars().all(known)
    };
    let name = |line: &str| line.split_once("  ").map(|(_, name)| name.to_owned()).filter(|name| plain(name));
    std::str::from_utf8(sums).ok()?.lines().map(name).collect()
}

fn put(link: &Connection, store: &ObjectStore, name: &str, bytes: &[u8]) -> Result<(), NatsError> {
    link.persist(&format!("storing {name}"), async || store.put(name, &mut &bytes[..]).await.map(drop).map_err(for_now))
}

/// An object of at most `limit` bytes; `None` if it is not there.
fn get(link: &Connection, store: &ObjectStore, name: &str, limit: u64) -> Result<Option<Vec<u8>>, NatsError> {
    use object_store::GetErrorKind::NotFound;
    link.persist(&format!("loading {name}"), async || {
        let mut object = match store.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == NotFound => return Ok(None),
            Err(error) => return Err(for_now(error)),
        };
        let size = object.info().size as u64;
        if size > limit {
            let reason = format!("{size} bytes, more than the {limit} that are allowed");
            return Err(Failure::ForGood(NatsError::Checkpoint { name: name.to_owned(), reason }));
        }
        // The size is what somebody has written beside the object.
        let (mut object, mut bytes) = ((&mut object).take(limit + 1), Vec::with_capacity(size as usize));
        loop {
            match timeout(SILENCE, object.read_buf(&mut bytes)).await {
                Ok(Ok(0)) => break,
                Ok(read) => read.map(drop).map_err(for_now)?,
                Err(_) => return Err(for_now("the rest of the object does not come")),
            }
        }
        if bytes.len() as u64 == size { Ok(Some(bytes)) } else { Err(for_now("the object is not as long as it says")) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_their_folder() {
        let two = files(b"00  model.bpk\n11  strategy.json\n").expect("plain names");
        assert_eq!(two, ["model.bpk", "strategy.json"]);
        for name in ["../model.bpk", "/etc/passwd", ".hidden", "a/b", "", "..", "a\\b"] {
            assert_eq!(files(format!("00  model.bpk\n11  {name}\n").as_bytes()), None, "{name:?}");
        }
        assert_eq!(files(b"model.bpk\n"), None);
        assert_eq!(files(&[0xff, 0x20, 0x20, 0x61]), None);
    }
}
