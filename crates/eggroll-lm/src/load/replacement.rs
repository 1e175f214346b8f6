//! Files of a folder that are replaced together: all of them, or none.
//!
//! New files are drafts until all of them are on disk. Then the old files are moved aside, the drafts take their names, and the old files
//! are removed. If any step fails before that, the old files get their names back. `config.json` is moved first and replaced last. A
//! process that is killed in between leaves a folder without one, which no program opens as a model.

use super::error::LoadError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// The file that makes a folder a model.
const FIRST: &str = "config.json";
const DRAFT: &str = ".draft";
/// Part of the names of old files before [`DRAFT`]'s random part.
const OLD: &str = ".old";

/// New files of a folder, drafts until [`commit`](Self::commit).
pub(super) struct Replacement<'a> {
    folder: &'a Path,
    drafts: Vec<(&'static str, NamedTempFile)>,
    /// Locked until this is dropped; `None` if the system cannot lock a folder.
    lock: Option<File>,
}

/// An empty draft of a file of a folder, readable for others as far as the process allows.
pub(super) fn draft_in(folder: &Path, name: &str) -> Result<NamedTempFile, LoadError> {
    let mut builder = Builder::new();
    let prefix = format!(".{name}.");
    builder.prefix(&prefix).suffix(DRAFT);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(LoadError::io(folder, "write a file in"))
}

/// A completed step, for undoing it.
enum Done {
    Moved { from: PathBuf, to: PathBuf },
    Placed(PathBuf),
}

impl<'a> Replacement<'a> {
    /// Creates and locks the folder, and removes the drafts of writers that were killed.
    pub(super) fn begin(folder: &'a Path, names: &[&str]) -> Result<Self, LoadError> {
        fs::create_dir_all(folder).map_err(LoadError::io(folder, "create"))?;
        let lock = lock(folder)?;
        let replacement = Self { folder, drafts: Vec::new(), lock };
        replacement.sweep(|name, old| !old && names.contains(&name))?;
        Ok(replacement)
    }

    pub(super) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// An empty draft of a file, readable for others as far as the process allows.
    pub(super) fn draft(&self, name: &str) -> Result<NamedTempFile, LoadError> {
        draft_in(self.folder, name)
    }

    /// Takes a draft that is completely on disk.
    pub(super) fn add(&mut self, name: &'static str, draft: NamedTempFile) {
        self.drafts.push((name, draft));
    }

    /// Writes a draft.
    pub(super) fn write(&mut self, name: &'static str, content: &[u8]) -> Result<(), LoadError> {
        let mut draft = self.draft(name)?;
        let written = draft.write_all(content).and_then(|()| draft.as_file().sync_all());
        written.map_err(LoadError::io(draft.path(), "write"))?;
        self.add(name, draft);
        Ok(())
    }

    /// Gives the drafts their names, and removes the files and folders `stale`. After an error everything is unchanged.
    pub(super) fn commit(mut self, stale: &[String]) -> Result<(), LoadError> {
        for (name, _) in &self.drafts {
            let path = self.folder.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                let error = io::Error::new(ErrorKind::IsADirectory, "it is a folder, expected a file or nothing");
                return Err(LoadError::io(&path, "replace")(error));
            }
        }
        self.drafts.sort_by_key(|(name, _)| *name == FIRST);
        let mut done = Vec::new();
        if let Err(error) = self.replace(stale, &mut done) {
            for step in done.into_iter().rev() {
                // The first error is the one to report.
                let _ = match step {
                    Done::Moved { from, to } => fs::rename(to, from),
                    Done::Placed(path) => fs::remove_file(path),
                };
            }
            return Err(error);
        }
        // The new model is complete: the next save removes files that cannot be removed now.
        for step in done {
            if let Done::Moved { to, .. } = step {
                let _ = remove(&to);
            }
        }
        let _ = self.sweep(|_, old| old);
        Ok(())
    }

    fn replace(&mut self, stale: &[String], done: &mut Vec<Done>) -> Result<(), LoadError> {
        let drafts = std::mem::take(&mut self.drafts);
        let names = drafts.iter().map(|(name, _)| *name).rev().chain(stale.iter().map(String::as_str));
        for name in names {
            let from = self.folder.join(name);
            if fs::symlink_metadata(&from).is_err() {
                continue;
            }
            let to = self.aside(name)?;
            fs::rename(&from, &to).map_err(LoadError::io(&from, "replace"))?;
            done.push(Done::Moved { from, to });
            if name == FIRST {
                // Before anything else is moved, also after a power failure.
                self.sync()?;
            }
        }
        for (name, draft) in drafts {
            if name == FIRST {
                self.sync()?;
            }
            let path = self.folder.join(name);
            draft.persist(&path).map_err(|error| LoadError::io(&path, "write")(error.error))?;
            done.push(Done::Placed(path));
        }
        self.sync()
    }

    /// A free name for an old file.
    fn aside(&self, name: &str) -> Result<PathBuf, LoadError> {
        let draft = self.draft(&format!("{name}{OLD}"))?;
        let path = draft.path().to_owned();
        draft.close().map_err(LoadError::io(&path, "remove"))?;
        Ok(path)
    }

    fn sync(&self) -> Result<(), LoadError> {
        if cfg!(unix) {
            let synced = File::open(self.folder).and_then(|folder| folder.sync_all());
            synced.map_err(LoadError::io(self.folder, "write to"))?;
        }
        Ok(())
    }

    /// Removes drafts, chosen by the name of their file and by whether they are old files. Only the holder of the lock knows that they are
    /// unused.
    fn sweep(&self, chosen: impl Fn(&str, bool) -> bool) -> Result<(), LoadError> {
        if self.lock.is_none() {
            return Ok(());
        }
        for entry in fs::read_dir(self.folder).map_err(LoadError::io(self.folder, "list"))?.flatten() {
            let name = entry.file_name();
            let Some((of, old)) = name.to_str().and_then(draft_of) else { continue };
            if chosen(of, old) {
                remove(&entry.path()).map_err(LoadError::io(&entry.path(), "remove"))?;
            }
        }
        Ok(())
    }
}

/// Removes a file, a link or a folder.
fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// The file that this is a draft of, `.NAME.` and six letters or digits, and whether it is an old one.
fn draft_of(name: &str) -> Option<(&str, bool)> {
    let (name, random) = name.strip_prefix('.')?.strip_suffix(DRAFT)?.rsplit_once('.')?;
    if random.len() != 6 || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    Some(name.strip_suffix(OLD).map_or((name, false), |name| (name, true)))
}

/// Locks a folder, where the system can: two models would mix.
fn lock(folder: &Path) -> Result<Option<File>, LoadError> {
    if !cfg!(unix) {
        return Ok(None);
    }
    let file = File::open(folder).map_err(LoadError::io(folder, "open"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => {
            let error = io::Error::new(ErrorKind::WouldBlock, "another process saves a model there: wait for it");
            Err(LoadError::io(folder, "write to")(error))
        }
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

    fn contents(folder: &Path) -> Vec<(String, String)> {
        let read = |entry: io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        };
        let mut contents: Vec<_> = fs::read_dir(folder).unwrap().map(read).collect();
        contents.sort();
        contents
    }

    fn replacement(folder: &Path) -> Replacement<'_> {
        let mut replacement = Replacement::begin(folder, &FILES).unwrap();
        FILES.iter().for_each(|name| replacement.write(name, b"new").unwrap());
        replacement
    }

    /// If any draft is lost before it gets its name, the old files keep theirs, and stale files still exist.
    #[test]
    fn a_step_that_fails_takes_back_those_before() {
        let stale = ["model.safetensors.index.json".to_owned(), "missing".to_owned()];
        for lost in 0..FILES.len() {
            let folder = tempfile::tempdir().unwrap();
            // The tokenizer is not there yet.
            for name in ["config.json", "model.safetensors", "model.safetensors.index.json", "notes"] {
                fs::write(folder.path().join(name), "old").unwrap();
            }
            let before = contents(folder.path());
            let broken = replacement(folder.path());
            fs::remove_file(broken.drafts[lost].1.path()).unwrap();
            assert!(matches!(broken.commit(&stale), Err(LoadError::Io { action: "write", .. })));
            assert_eq!(contents(folder.path()), before, "{lost}");
            replacement(folder.path()).commit(&stale).unwrap();
            let after: Vec<_> =
                contents(folder.path()).into_iter().map(|(name, content)| name + " " + &content).collect();
            assert_eq!(after, ["config.json new", "model.safetensors new", "notes old", "tokenizer.json new"]);
        }
    }

    /// A killed process leaves its drafts, and after its first step old files too: these are kept until a new model is complete.
    #[test]
    fn what_was_left_is_swept_by_the_next_save() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "left").unwrap();
        [".model.safetensors.a1B2c3.draft", ".config.json.old.a1B2c3.draft"].iter().for_each(|name| write(name));
        [".notes.a1B2c3.draft", "a.draft", ".config.json.long-name.draft"].iter().for_each(|name| write(name));
        let next = replacement(folder.path());
        let names = || contents(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(!names().contains(&".model.safetensors.a1B2c3.draft".into()));
        assert!(names().contains(&".config.json.old.a1B2c3.draft".into()));
        let error = Replacement::begin(folder.path(), &FILES).err().map(|error| error.to_string());
        assert!(!cfg!(unix) || error.is_some_and(|error| error.contains("another process saves a model there")));
        next.commit(&[]).unwrap();
        let mut expected = vec![".config.json.long-name.draft", ".notes.a1B2c3.draft", "a.draft"];
        expected.extend(FILES);
        assert_eq!(names(), expected);
    }
}
