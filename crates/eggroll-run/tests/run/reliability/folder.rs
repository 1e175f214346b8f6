//! The folder of a run: nothing of the user's is deleted or replaced.

use eggroll_run::RunFolder;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with `home/file`, `home/runs/lr0.1/{settings.json,model}`.
fn home() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("runs/lr0.1")).expect("makes");
    for (file, text) in [("file", "mine"), ("runs/lr0.1/settings.json", "1"), ("runs/lr0.1/model", "first")] {
        fs::write(home.join(file), text).expect("writes");
    }
    (folder, home)
}

/// All files below a folder, with what is in them.
fn contents(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), fs::read_to_string(&path).expect("reads"))),
        }
    }
    found.sort();
    found
}

fn begin(path: impl AsRef<Path>, settings: u32) -> Result<(), String> {
    RunFolder::new(path).begin(&settings).map(drop).map_err(|error| error.to_string())
}

/// Paths without a name, and what is the user's: refused, and nothing has changed.
#[test]
fn what_is_not_a_run_stays() {
    let (folder, home) = home();
    fs::create_dir_all(home.join("thesis/chapter")).expect("makes");
    fs::write(home.join("thesis/chapter/text"), "years").expect("writes");
    let before = contents(folder.path());
    let refuse = |path: PathBuf, expected: &str| {
        let error = begin(&path, 2).expect_err(&path.display().to_string());
        let path: PathBuf = path.components().collect();
        assert!(error.contains(expected) && error.contains(&format!("{path:?}")), "{error}");
        assert_eq!(contents(folder.path()), before, "{}", path.display());
    };
    let no_name = "cannot be the folder of a run";
    for path in ["..", "runs/..", "runs/../", "runs/lr0.1/../.."] {
        refuse(home.join(path), no_name);
    }
    // Outside the temporary folder: only looked at.
    for path in ["", ".", "./", "..", "/", "//"] {
        let error = RunFolder::new(path).check().expect_err(path).to_string();
        assert!(error.contains(no_name), "{error}");
    }
    let not_a_run = "exists and is not a run";
    for path in ["", "thesis", "thesis/", "runs", "runs/.", "runs/./", "file"] {
        refuse(home.join(path), not_a_run);
    }
}

/// Numbers behind the whole name, and no number twice.
#[test]
fn earlier_runs_are_moved_aside() {
    let (_folder, home) = home();
    let runs = home.join("runs");
    let read = |file: &str| fs::read_to_string(runs.join(file)).expect("reads");
    // A trailing slash, a dot: the same folder.
    for (settings, path) in [(2, "lr0.1"), (3, "lr0.1/"), (4, "lr0.1/.")] {
        begin(runs.join(path), settings).expect("begins");
    }
    assert_eq!(read("lr0.1.previous-1/model"), "first");
    let settings = ["lr0.1.previous-1", "lr0.1.previous-2", "lr0.1.previous-3", "lr0.1"]
        .map(|run| read(&format!("{run}/settings.json")));
    assert_eq!(settings, ["1", "2", "3", "4"]);
    // Another run whose name differs behind the dot.
    begin(runs.join("lr0.2"), 5).expect("begins");
    begin(runs.join("lr0.2"), 6).expect("begins");
    assert_eq!(read("lr0.2.previous-1/settings.json"), "5");
    // What is the user's under such a name is not taken either.
    fs::create_dir(runs.join("lr0.2.previous-2")).expect("makes");
    begin(runs.join("lr0.2"), 8).expect("begins");
    assert_eq!(read("lr0.2.previous-3/settings.json"), "6");
}

/// Links: what they lead to stays where it is.
#[cfg(unix)]
#[test]
fn links_are_not_followed_when_a_run_is_moved() {
    let (_folder, home) = home();
    let link = home.join("link");
    std::os::unix::fs::symlink(home.join("runs/lr0.1"), &link).expect("links");
    begin(&link, 2).expect("begins");
    assert_eq!(fs::read_to_string(home.join("runs/lr0.1/model")).expect("reads"), "first");
    let broken = home.join("broken");
    std::os::unix::fs::symlink(home.join("nowhere"), &broken).expect("links");
    assert!(begin(&broken, 3).expect_err("refused").contains("is not a run"));
}
