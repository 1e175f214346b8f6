//! The files are those that the README describes.

use crate::loader::folder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn sums_are_those_of_the_readme() {
    let readme = fs::read_to_string(folder().join("README.md")).expect("a README");
    let recorded: BTreeMap<&str, &str> = readme
        .lines()
        .filter_map(|line| line.split_once("  "))
        .filter(|(sum, name)| sum.len() == 64 && name.ends_with(".npz"))
        .map(|(sum, name)| (name, sum))
        .collect();
    let mut present = 0;
    for entry in fs::read_dir(folder()).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "npz") {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let mut bytes = fs::read(&path).expect("readable");
            assert_eq!(Some(sum(&bytes).as_str()), recorded.get(name.as_str()).copied(), "{name}");
            bytes[0] ^= 1;
            assert_ne!(Some(sum(&bytes).as_str()), recorded.get(name.as_str()).copied(), "{name}, changed");
            present += 1;
        }
    }
    assert_eq!(present, recorded.len(), "files in the README that are not there");
}
