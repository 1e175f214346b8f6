//! Checkpoints on the server: the files of the latest one after the other in parts, and a manifest that the coordinator signs.

use super::config::NatsConfig;
use super::connection::{AttemptFailure, Connection};
use super::error::NatsError;
use super::keys::{CoordinatorKey, SIGNATURE};
use super::protocol::{Manifest, is_plain};
use super::run_id::RunId;
use super::streams::Label;
use crate::checkpoint::{self, generation_of};
use crate::error::Error;
use burn::module::Module;
use eggroll_train::EvolutionStrategy;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// Bytes of a checkpoint for each of the model's numbers: the number, and what optimizers keep of it, eight bytes each.
const BYTES_PER_NUMBER: u64 = 40;
/// Bytes of its other files, and of their heads.
const SLACK: u64 = 4 << 20;
/// Bytes of a manifest at most.
const MANIFEST: usize = 16 << 10;

/// Bytes that a checkpoint of this strategy may have.
pub(super) fn limit(config: &NatsConfig, strategy: &EvolutionStrategy) -> u64 {
    let entries = strategy.parameters().entries().iter();
    let numbers = entries.map(|entry| entry.shape.iter().map(|size| *size as u64).product::<u64>());
    let needed = numbers.fold(SLACK, |sum, numbers| sum.saturating_add(numbers.saturating_mul(BYTES_PER_NUMBER)));
    config.checkpoint_bytes.unwrap_or(needed)
}

/// Puts a checkpoint's folder on the server, makes it the latest, and drops all but the one before.
pub(super) fn offer(
    link: &Connection,
    config: &NatsConfig,
    key: &CoordinatorKey,
    label: &Label,
    draft: u64,
    limit: u64,
    folder: &Path,
) -> Result<(), NatsError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let refuse = |reason: String| NatsError::Checkpoint { name: name.clone(), reason };
    let generation = generation_of(&name).ok_or_else(|| refuse("this is no checkpoint's folder".to_owned()))?;
    let (mut files, mut content) = (Vec::new(), Vec::new());
    let mut found: Vec<_> = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|error| NatsError::from(Error::io(folder)(error)))?;
    found.sort_by_key(fs::DirEntry::file_name);
    for file in found {
        let (path, file) = (file.path(), file.file_name().to_string_lossy().into_owned());
        if !is_plain(&file) {
            return Err(refuse(format!("it has a file {file:?}, and names of letters, digits, ., - and _ are due")));
        }
        let bytes = fs::read(&path).map_err(|error| NatsError::from(Error::io(&path)(error)))?;
        files.push((file, bytes.len() as u64));
        content.extend(bytes);
    }
    if content.len() as u64 > limit {
        return Err(refuse(format!(
            "it has {} bytes, and workers load at most {limit}: set checkpoint_bytes on all nodes",
            content.len()
        )));
    }
    link.create_checkpoints(config, label, content.len() as u64)?;
    let before = latest(link, &label.run, |sealed| key.open_own(sealed))?;
    // With the earlier parts the earlier label goes.
    link.publish_label(key, label, draft)?;
    // With room for the new one.
    purge(link, before.as_ref().map_or(u64::MAX, |before| before.first))?;
    let parts: Vec<_> = content.chunks(link.message_bytes().max(1)).collect();
    let sum = Sha256::digest(&content).into();
    let mut manifest = Manifest { generation, draft, first: 0, parts: parts.len() as u32, sum, files };
    for (number, bytes) in parts.into_iter().enumerate() {
        let (subject, id) = (link.names.part_subject(&manifest, number as u32), format!("{draft}.{number}"));
        let place = link.persist("storing a checkpoint", async || {
            link.publish(&subject, &id, bytes, None).await.map_err(AttemptFailure::from)
        })?;
        if number == 0 {
            manifest.first = place;
        }
    }
    let (subject, sealed) = (link.names.manifest_subject(), key.seal(manifest.encode(&label.run)));
    link.persist("storing a checkpoint", async || {
        link.publish(&subject, &format!("{draft}"), &sealed, None).await.map(drop).map_err(AttemptFailure::from)
    })
}

/// Drops the parts of earlier checkpoints, and their manifests.
fn purge(link: &Connection, first: u64) -> Result<(), NatsError> {
    match first {
        u64::MAX => Ok(()),
        first => link.purge(&link.names.checkpoints, Some(first)),
    }
}

/// The manifest of the latest checkpoint, if it is genuine and of this run.
fn latest(
    link: &Connection,
    run: &RunId,
    open: impl Fn(&[u8]) -> Option<&[u8]>,
) -> Result<Option<Manifest>, NatsError> {
    let subject = link.names.manifest_subject();
    let found =
        link.persist("looking for a checkpoint", async || link.last_of(&link.names.checkpoints, &subject).await)?;
    let bytes = found.map(|message| message.payload).filter(|bytes| bytes.len() <= MANIFEST + SIGNATURE);
    Ok(bytes.and_then(|bytes| Manifest::decode(open(&bytes)?, run).ok()))
}

/// Loads the latest checkpoint into `model`, if it is of a later generation than `strategy`, of whose run it has to be.
pub(super) fn load<M: Module>(
    link: &Connection,
    config: &NatsConfig,
    open: impl Fn(&[u8]) -> Option<&[u8]>,
    strategy: &EvolutionStrategy,
    model: &M,
) -> Result<Option<(EvolutionStrategy, M)>, NatsError> {
    let expected = RunId::of(config, strategy)?;
    let load = |manifest: &Manifest| {
        let scratch = scratch(config)?;
        let folder = scratch.path().join(name_of(manifest));
        download(link, manifest, limit(config, strategy), &folder)?;
        let loaded = checkpoint::load_under(&folder, strategy, model)?;
        match RunId::of(config, &loaded.0)? {
            found if found == expected => Ok(loaded),
            found => Err(expected.refuse(config, &found)),
        }
    };
    loop {
        let later = |manifest: &Manifest| manifest.generation > strategy.generation();
        let Some(manifest) = latest(link, &expected, &open)?.filter(later) else {
            return Ok(None);
        };
        let loaded = load(&manifest);
        // One that was dropped while it was loaded has a successor.
        if loaded.is_ok() || latest(link, &expected, &open)?.as_ref() == Some(&manifest) {
            return loaded.map(Some);
        }
    }
}

/// The name of its folder.
fn name_of(manifest: &Manifest) -> String {
    format!("generation-{:012}", manifest.generation)
}

/// A folder that nobody else may read, of a name that nobody knows before.
fn scratch(config: &NatsConfig) -> Result<TempDir, NatsError> {
    let mut builder = Builder::new();
    builder.prefix("eggroll-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Ok(builder.tempdir_in(&config.scratch).map_err(Error::io(&config.scratch))?)
}

/// Copies a checkpoint's files to a folder, part by part: no more is held than one, and no more is written than the manifest says.
fn download(link: &Connection, manifest: &Manifest, limit: u64, folder: &Path) -> Result<(), NatsError> {
    let name = name_of(manifest);
    let refuse = |reason: String| NatsError::Checkpoint { name: name.clone(), reason };
    let bytes = manifest.bytes().filter(|bytes| *bytes <= limit).ok_or_else(|| {
        let bytes = manifest.bytes().map_or("more than 2⁶⁴".to_owned(), |bytes| bytes.to_string());
        refuse(format!("{bytes} bytes, more than the {limit} that this model needs: see checkpoint_bytes"))
    })?;
    fs::create_dir(folder).map_err(Error::io(folder))?;
    let (mut sum, mut number, mut part) = (Sha256::new(), 0, Vec::new());
    let mut left = bytes;
    for (file, len) in &manifest.files {
        let path = folder.join(file);
        let mut output = File::create_new(&path).map_err(Error::io(&path))?;
        let mut due = *len;
        while due > 0 {
            if part.is_empty() {
                if number == manifest.parts {
                    return Err(refuse("it is not whole".to_owned()));
                }
                part = get(link, manifest, number)?.ok_or_else(|| refuse("it is not whole".to_owned()))?;
                if part.is_empty() || part.len() as u64 > left {
                    return Err(refuse("its parts are not as long as it says".to_owned()));
                }
                left -= part.len() as u64;
                number += 1;
                sum.update(&part);
            }
            let rest = part.split_off(part.len().min(usize::try_from(due).unwrap_or(usize::MAX)));
            output.write_all(&part).map_err(Error::io(&path))?;
            due -= part.len() as u64;
            part = rest;
        }
    }
    match <[u8; 32]>::from(sum.finalize()) == manifest.sum {
        true => Ok(()),
        false => Err(refuse("its content is not what the coordinator has signed".to_owned())),
    }
}

fn get(link: &Connection, manifest: &Manifest, part: u32) -> Result<Option<Vec<u8>>, NatsError> {
    let subject = link.names.part_subject(manifest, part);
    link.persist("loading a checkpoint", async || {
        let found = link.last_of(&link.names.checkpoints, &subject).await?;
        Ok(found.map(|message| message.payload))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn scratch_folders_are_of_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let config = NatsConfig { scratch: folder.path().to_owned(), ..NatsConfig::new("", "run") };
        let (one, two) = (scratch(&config).expect("made"), scratch(&config).expect("made"));
        let mode = fs::metadata(one.path()).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_ne!(one.path(), two.path());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
