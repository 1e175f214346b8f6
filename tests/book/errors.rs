//! Errors of all crates: `main` and `unwrap` print their `Debug`, which is the message.

use std::fs;
use std::path::{Path, PathBuf};

/// Errors of a source file whose `Debug` is not their message.
fn without_message(text: &str) -> Vec<String> {
    let derived = text.split("#[derive(").skip(1).filter_map(|rest| rest.split_once(")]")).filter(|(derives, _)| {
        derives.contains("thiserror::Error") || derives.split(", ").any(|derive| derive == "Error")
    });
    let derived = derived.filter_map(|(_, item)| {
        let is_item =
            |line: &&str| !line.starts_with(['#', '/', ' ']) && (line.contains("enum ") || line.contains("struct "));
        let words = item.lines().find(is_item)?.split([' ', '(', '{', ';']);
        words.skip_while(|word| !matches!(*word, "enum" | "struct")).nth(1)
    });
    let written = text.split(" std::error::Error for ").skip(1).filter_map(|rest| rest.split([' ', '{', '<']).next());
    let is_wrong = |name: &&str| !text.contains(&format!("debug_is_message!({name});"));
    derived.chain(written).filter(is_wrong).map(str::to_owned).collect()
}

/// The source files below a folder.
fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let inner = |path: PathBuf| if path.is_dir() { sources(path) } else { vec![path] };
    entries.flat_map(inner).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

#[test]
fn debug_of_every_error_is_its_message() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let crates = fs::read_dir(root.join("crates")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut errors = 0;
    for path in crates.chain([root.to_owned()]).flat_map(|folder| sources(folder.join("src"))) {
        let text = fs::read_to_string(&path).expect("reads");
        errors += text.matches("debug_is_message!(").count();
        assert_eq!(without_message(&text), Vec::<String>::new(), "{}", path.display());
    }
    assert!(errors > 30, "{errors} errors were found");
}

#[test]
fn canary_an_error_that_derives_debug_is_found() {
    let derived = "/// One.\n#[derive(Debug, thiserror::Error)]\n#[non_exhaustive]\npub enum OneError {\n";
    let written = "#[derive(Debug)]\npub struct TwoError;\nimpl std::error::Error for TwoError {}\n";
    assert_eq!(without_message(&format!("{derived}{written}")), ["OneError", "TwoError"]);
    assert!(without_message(&format!("{derived}eggroll_core::debug_is_message!(OneError);")).is_empty());
}
