//! The files that version 0.1 wrote are read by every 0.x: `tests/golden/written_by_0.1`.
//!
//! `EGGROLL_WRITE=FOLDER` has the tests write the files of this version into a folder, as they wrote those.

mod finetune;
mod float;
mod integer;

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The files of version 0.1.
fn golden(run: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/written_by_0.1").join(run)
}

/// Has `write` make the files of a run, if they are asked for; they must not be there already.
fn write_if_asked(run: &str, write: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os("EGGROLL_WRITE") {
        let folder = PathBuf::from(folder).join(run);
        assert!(!folder.exists(), "{} is there: files of a version are written once", folder.display());
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder);
    }
}

/// A copy of the files of a run, to continue in.
fn copy(run: &str) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(&golden(run), copy.path());
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let (path, target) = {
            let entry = entry.expect("an entry");
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            fs::create_dir(&target).expect("a folder");
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copies");
        }
    }
}

/// Changes one byte in the middle of a file, has `read` refuse it with an error, and changes it back.
fn refuses_a_changed_byte(path: &Path, read: impl FnOnce() -> Option<String>) {
    let whole = fs::read(path).expect("reads");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    fs::write(path, changed).expect("writes");
    let refusal = read();
    fs::write(path, whole).expect("writes");
    assert!(refusal.is_some(), "{} is read with a changed byte", path.display());
}
