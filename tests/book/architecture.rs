//! The tree and the walks of `docs/architecture.md`: every path in them is there, and every name in its file.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The paths that a tree draws: a line's first word, below the last line that is less indented; and the files that its comment names in
/// backticks, next to it or below it.
fn drawn(tree: &str) -> Vec<Vec<PathBuf>> {
    let mut above: Vec<(usize, PathBuf)> = Vec::new();
    let mut paths = Vec::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        above.retain(|(of, _)| *of < indent);
        let folder = above.last().map(|(_, path)| path.clone()).unwrap_or_default();
        let word = line.split_whitespace().next().unwrap_or_default();
        let path = folder.join(word);
        paths.push(vec![path.clone()]);
        let named = line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") || name.ends_with('/'));
        paths.extend(named.map(|name| vec![folder.join(name), path.join(name)]));
        above.push((indent, path));
    }
    paths
}

fn trees(text: &str) -> impl Iterator<Item = &str> {
    text.split("```text\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|tree| tree.contains("\ncrates/\n"))
}

/// Paths of a tree that are not there.
fn missing(tree: &str) -> Vec<Vec<PathBuf>> {
    let is_there = |path: &PathBuf| root().join(path).exists();
    drawn(tree).into_iter().filter(|paths| !paths.iter().any(is_there)).collect()
}

#[test]
fn every_path_of_the_tree_is_there() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).expect("reads");
    assert!(text.lines().count() < 150, "{} lines", text.lines().count());
    let all: usize = trees(&text).map(|tree| drawn(tree).len()).sum();
    assert!(all > 60, "{all} paths");
    for tree in trees(&text) {
        assert_eq!(missing(tree), Vec::<Vec<PathBuf>>::new());
    }
}

#[test]
fn canary_what_is_missing_is_found() {
    let tree = "crates/\n  eggroll-core/src/\n    lib.rs  a root\n    no.rs  nothing\n    ops/  `none.rs`, `mod.rs`\n";
    let paths: Vec<_> = missing(tree).into_iter().map(|mut paths| paths.remove(0)).collect();
    assert_eq!(paths, ["crates/eggroll-core/src/no.rs", "crates/eggroll-core/src/none.rs"].map(PathBuf::from));
}

/// The numbered lines of the walks: files in backticks, each with the names behind it up to the next one.
fn steps(text: &str) -> Vec<(String, Vec<String>)> {
    let is_step = |line: &&str| line.split_once(". `").is_some_and(|(number, _)| number.parse::<usize>().is_ok());
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for quoted in text.lines().filter(is_step).flat_map(|line| line.split('`').skip(1).step_by(2)) {
        match (quoted.ends_with(".rs"), steps.last_mut()) {
            (false, Some((_, names))) => names.push(quoted.to_owned()),
            _ => steps.push((quoted.to_owned(), Vec::new())),
        }
    }
    steps
}

/// Names that are not whole words in their files, and files that are not there.
fn lost(text: &str) -> Vec<String> {
    let mut lost = Vec::new();
    for (file, names) in steps(text) {
        let Ok(content) = fs::read_to_string(root().join(&file)) else {
            lost.push(file);
            continue;
        };
        let words: Vec<_> = content.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        lost.extend(
            names.into_iter().filter(|name| !words.contains(&name.as_str())).map(|name| format!("{file}: {name}")),
        );
    }
    lost
}

#[test]
fn walks_are_what_files_say() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).expect("reads");
    assert!(steps(&text).len() > 40, "{} steps", steps(&text).len());
    assert_eq!(lost(&text), Vec::<String>::new());
}

#[test]
fn canary_lost_steps_are_found() {
    let text = "1. `src/lib.rs`: `nothing_of_it`.\n2. `src/none.rs`: `x`.\n";
    assert_eq!(lost(text), ["src/lib.rs: nothing_of_it", "src/none.rs"]);
}
