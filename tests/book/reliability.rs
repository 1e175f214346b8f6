//! The table of `docs/reliability.md`: every test that it names is there.

use std::fs;
use std::path::{Path, PathBuf};

/// What the page calls folders.
const FOLDERS: [(&str, &str); 9] = [
    ("t/", "crates/eggroll-run/tests/run/"),
    ("r/", "crates/eggroll-run/tests/run/reliability/"),
    ("a/", "crates/eggroll-train/tests/train/"),
    ("run/", "crates/eggroll-run/src/"),
    ("train/", "crates/eggroll-train/src/"),
    ("p/", "tests/programs/"),
    ("n/", "crates/eggroll-nats/tests/nats/"),
    ("l/", "crates/eggroll-lm/tests/load/"),
    ("nats/", "crates/eggroll-nats/src/"),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What stands in backticks in the last column of a row.
fn named(row: &str) -> Vec<&str> {
    let last = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
    last.split('`').skip(1).step_by(2).collect()
}

fn path(short: &str) -> PathBuf {
    let long =
        FOLDERS.iter().find_map(|(short_name, long)| Some(root().join(long).join(short.strip_prefix(short_name)?)));
    long.unwrap_or_else(|| root().join(short))
}

/// Whether a file has a test of that name.
fn has_test(file: &Path, name: &str) -> bool {
    let source = fs::read_to_string(file).unwrap_or_default();
    let first = |part: &str| part.split_once("fn ").is_some_and(|(_, rest)| rest.starts_with(&format!("{name}(")));
    source.split("#[test]").skip(1).any(first)
}

/// What a row names that is not there; a name without a file is of the file before.
fn missing(row: &str) -> Vec<String> {
    let mut file = PathBuf::new();
    let mut there = |word: &str| match (word.split_once("::"), word.strip_prefix("cargo run --release --example ")) {
        (Some((short, name)), _) => {
            file = path(short);
            has_test(&file, name)
        }
        (None, Some(example)) => root().join("examples").join(example).join("main.rs").exists(),
        (None, None) if word.ends_with(".rs") || word.starts_with("scripts/") => path(word).exists(),
        (None, None) => has_test(&file, word),
    };
    let names = named(row);
    if names.is_empty() {
        return vec!["no test at all".into()];
    }
    names.into_iter().filter(|word| !there(word)).map(str::to_owned).collect()
}

#[test]
fn every_test_of_the_table_is_there() {
    let text = fs::read_to_string(root().join("docs/reliability.md")).expect("reads");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<&str> = rows.filter(|row| !row.starts_with("| fault |")).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        assert_eq!(missing(row), Vec::<String>::new(), "{row}");
    }
}

#[test]
fn canary_what_is_missing_is_found() {
    let known = "`a/strategy.rs::noise_reuse_addresses`";
    assert!(missing(&format!("| a fault | behavior | {known}, `refusals_name_the_value`, `t/roles.rs` |")).is_empty());
    for (absent, named) in [
        ("`a/strategy.rs::noise_reuse`", "a/strategy.rs::noise_reuse"),
        ("`r/none.rs`", "r/none.rs"),
        ("`cargo run --release --example nothing`", "cargo run --release --example nothing"),
        ("none", "no test at all"),
    ] {
        assert_eq!(missing(&format!("| a fault | of `evaluate` | {absent} |")), [named]);
    }
    assert_eq!(missing(&format!("| a fault | behavior | {known}, `child_that_saves` |")), ["child_that_saves"]);
}
