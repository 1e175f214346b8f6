//! The examples of one file: they run as they are, and learn.

use super::support::example;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The number behind the last `before` of a program's output.
fn number(program: &str, arguments: &[&str], before: &str) -> f64 {
    let mut command = Command::new(example(program));
    let output = command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program}: {text} {}", String::from_utf8_lossy(&output.stderr));
    let number = text.rsplit_once(before).and_then(|(_, behind)| behind.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{program} has no {before:?}: {text}"))
}

#[test]
fn minimal_learns_exclusive_or() {
    let output = Command::new(example("minimal")).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("answers [0, 1, 1, 0], expected [0, 1, 1, 0]\n"), "{text}");
}

#[test]
fn cartpole_minimal_balances() {
    let mean = number("cartpole_minimal", &[], "mean return of 100 episodes: ");
    assert!(mean > 400.0, "{mean}");
}

#[test]
fn the_dataloader_feeds_a_population() {
    let accuracy = number("dataloader", &["40"], "test accuracy ");
    assert!(accuracy > 60.0, "{accuracy} %");
}

/// Of an untrained network, a sigma near that of the sweeps is recommended for the likelihood, and pictures are drawn.
#[test]
fn a_probe_finds_a_sigma() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("probe.svg");
    let output = Command::new(example("probe_sigma")).args(["0", &file.to_string_lossy()]).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let recommended: Vec<&str> = text.lines().filter(|line| line.ends_with("<- recommended")).collect();
    assert_eq!(recommended.len(), 4, "{text}");
    // The likelihood, twice: the accuracy of an untrained network is chance.
    let likelihood = [recommended[0], recommended[2]];
    assert!(likelihood.iter().all(|line| line.contains("1.000e-2") || line.contains("3.000e-2")), "{text}");
    assert!(fs::read_to_string(file).expect("drawn").matches("pairs that differ").count() == 4);
}

/// They are for reading: one screen each.
#[test]
fn they_are_short() {
    for (name, most) in [("minimal", 50), ("cartpole_minimal", 50), ("dataloader", 70), ("probe_sigma", 60)] {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("examples").join(name).with_extension("rs");
        let lines = fs::read_to_string(path).expect("reads").lines().count();
        assert!(lines <= most, "{name}.rs has {lines} lines, more than {most}");
    }
}

/// Every example has a place in the table, and the README is short.
#[test]
fn the_table_of_examples_is_complete() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let table = fs::read_to_string(root.join("examples/README.md")).expect("reads");
    for entry in fs::read_dir(root.join("examples")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let link = if path.is_dir() { format!("({name}/main.rs)") } else { format!("({name}.rs)") };
        assert!(name == "README" || table.contains(&link), "examples/README.md has no {link}");
    }
    let readme = fs::read_to_string(root.join("README.md")).expect("reads");
    assert!(readme.lines().count() <= 170, "README.md has {} lines", readme.lines().count());
}
