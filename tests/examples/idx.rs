//! The IDX loader of the examples: damaged files are refused, or read as they say; nothing is allocated that is not there.

use crate::allocations::largest;
use eggroll_examples::digits::{CLASSES, Images};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::FileFailurePersistence;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Of decompression, and of reading ahead.
const SLACK: usize = 64 << 10;

/// The bytes of an IDX file, not compressed.
fn idx(dims: &[u32], values: &[u8]) -> Vec<u8> {
    let magic = [0, 0, 8, dims.len() as u8];
    let dims = dims.iter().flat_map(|dim| dim.to_be_bytes());
    magic.into_iter().chain(dims).chain(values.iter().copied()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

fn images() -> Vec<u8> {
    idx(&[5, 4, 3], &(0..60).collect::<Vec<u8>>())
}

fn labels() -> Vec<u8> {
    idx(&[5], &[0, 9, 3, 3, 1])
}

/// Reads two files, watched: what was read, or the error, and the largest allocation.
fn read(folder: &Path, images: &[u8], labels: &[u8]) -> (Result<Images, String>, usize) {
    fs::write(folder.join("x-images-idx3-ubyte.gz"), images).expect("writes");
    fs::write(folder.join("x-labels-idx1-ubyte.gz"), labels).expect("writes");
    largest(|| Images::read(folder, "x").map_err(|error| error.to_string()))
}

/// Changes bytes: a flip, a cut, an insertion, or what could be taken for a length.
fn damage(bytes: &mut Vec<u8>, (at, kind, value): &(Index, u8, u8)) {
    let place = at.index(bytes.len().max(1));
    if bytes.is_empty() {
        return;
    }
    match kind % 5 {
        0 => bytes[place] ^= 1 << (value % 8),
        1 => bytes.truncate(place),
        2 => bytes.insert(place, *value),
        3 => drop(bytes.drain(..place.min(usize::from(*value)))),
        _ => bytes.iter_mut().skip(place).take(4).for_each(|byte| *byte = 0xff),
    }
}

/// Whether what was read is consistent, and nothing large was allocated for it.
fn check((outcome, allocated): (Result<Images, String>, usize), len: usize) -> Result<(), TestCaseError> {
    match outcome {
        Ok(images) => {
            prop_assert_eq!(images.pixels.len(), images.len() * images.size());
            prop_assert!(images.labels.iter().all(|label| usize::from(*label) < CLASSES));
        }
        Err(error) => prop_assert!(error.contains("-ubyte.gz: "), "{error}"),
    }
    prop_assert!(allocated <= len + SLACK, "an allocation of {allocated} bytes for {len}");
    Ok(())
}

fn config() -> ProptestConfig {
    let corpus = FileFailurePersistence::Direct("corpus/idx.txt");
    ProptestConfig { cases: 1000, failure_persistence: Some(Box::new(corpus)), ..ProptestConfig::default() }
}

fn damages() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    proptest::collection::vec(any::<(Index, u8, u8)>(), 1..4)
}

proptest! {
    #![proptest_config(config())]

    /// Damage to the files as they are.
    #[test]
    fn damaged_files(first: bool, damages in damages()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut images, mut labels) = (gzip(&images()), gzip(&labels()));
        let damaged = if first { &mut images } else { &mut labels };
        damages.iter().for_each(|change| damage(damaged, change));
        check(read(folder.path(), &images, &labels), images.len() + labels.len())?;
    }

    /// Damage to what is in them: the checksums of gzip agree with it.
    #[test]
    fn damaged_contents(first: bool, damages in damages()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut images, mut labels) = (images(), labels());
        let damaged = if first { &mut images } else { &mut labels };
        damages.iter().for_each(|change| damage(damaged, change));
        check(read(folder.path(), &gzip(&images), &gzip(&labels)), images.len() + labels.len())?;
    }
}

#[test]
fn whole_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (outcome, _) = read(folder.path(), &gzip(&images()), &gzip(&labels()));
    let images = outcome.expect("reads");
    assert_eq!((images.len(), images.shape), (5, [4, 3]));
    assert_eq!((images.pixels[59], &images.labels[..]), (59, &[0, 9, 3, 3, 1][..]));
}

/// Files as they are found elsewhere: of several members, plain, with other names.
#[test]
fn other_files_of_the_same_data_are_read() {
    let members = |bytes: &[u8]| [gzip(&bytes[..20]), gzip(&bytes[20..])].concat();
    let forms: [(&str, Vec<u8>); 5] = [
        ("-images-idx3-ubyte.gz", members(&images())),
        ("-images-idx3-ubyte.gz", images()),
        ("-images-idx3-ubyte", images()),
        ("-images-idx3-ubyte", gzip(&images())),
        ("-images.idx3-ubyte", images()),
    ];
    for (name, bytes) in forms {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(format!("x{name}")), bytes).expect("writes");
        fs::write(folder.path().join("x-labels.idx1-ubyte.gz"), gzip(&labels())).expect("writes");
        let images = Images::read(folder.path(), "x").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((images.pixels, images.labels[1]), ((0..60).collect(), 9), "{name}");
    }
}

/// What is wrong with a file is said of it, whatever its form.
#[test]
fn damage_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, labels) = (images(), gzip(&labels()));
    let with = |bytes: Vec<u8>, more: &[u8]| [&bytes[..], more].concat();
    for (images, part) in [
        (Vec::new(), "cannot read the magic number: the file is truncated"),
        (
            b"<!DOCTYPE html>".to_vec(),
            "magic number 0x3c21444f, expected 0x0803 (bytes, 3 dimensions): neither IDX nor gzip",
        ),
        (gzip(b"<!DOCTYPE html>"), "magic number 0x3c21444f, expected 0x0803"),
        (idx(&[60], &[0; 60]), "magic number 0x0801, expected 0x0803 (bytes, 3 dimensions)"),
        (whole[..70].to_vec(), "54 bytes of data, expected 60"),
        (with(whole.clone(), &[0]), "more bytes of data, expected 60"),
        (gzip(&with(whole.clone(), &[0])), "more bytes of data, expected 60"),
        (with(gzip(&whole), b"what else is here"), "the file is corrupt"),
        (gzip(&whole)[..40].to_vec(), "the file is truncated"),
        (idx(&[4, 4, 3], &whole[16..64]), "5 labels for 4 images"),
    ] {
        let (outcome, _) = read(folder.path(), &images, &labels);
        let error = outcome.expect_err("refused");
        assert!(error.contains(part), "{error}, expected {part}");
    }
    let other = tempfile::tempdir().expect("a folder");
    let (first, _) = read(other.path(), &whole, &labels);
    read(folder.path(), &idx(&[5, 3, 4], &whole[16..]), &labels).0.expect("reads");
    let error = first.expect("reads").read_next(folder.path(), "x").expect_err("refused").to_string();
    assert!(error.ends_with("images of [3, 4] pixels, where others are [4, 3]"), "{error}");
}

/// Dimensions that promise more than there is: refused when the data ends, and not before it is read.
#[test]
fn huge_lengths_allocate_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (dims, part) in [
        ([u32::MAX, 1, 1], "60 bytes of data, expected 4294967295"),
        ([u32::MAX; 3], "are empty or too large"),
        ([1 << 16, 1 << 15, 2], "60 bytes of data, expected 4294967296"),
        ([0, 4, 3], "are empty or too large"),
        ([5, 4, 2], "more bytes of data, expected 40"),
    ] {
        let images = gzip(&idx(&dims, &(0..60).collect::<Vec<u8>>()));
        let (outcome, allocated) = read(folder.path(), &images, &gzip(&labels()));
        let error = outcome.expect_err("refused");
        assert!(error.contains(part), "{dims:?}: {error}");
        assert!(allocated <= images.len() + SLACK, "{dims:?}: {allocated} bytes");
    }
    let (outcome, _) = read(folder.path(), &gzip(&images()), &gzip(&idx(&[5], &[0, 1, 2, 10, 3])));
    assert!(outcome.expect_err("refused").contains("label 10 of image 3 (from 0) is not below 10"));
}
