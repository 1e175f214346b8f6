//! Logs next to `log.jsonl`: a table, and event files of TensorBoard. Both continue with the run.

use crate::learner::task::{Scripted, config, layer, log, training};
use eggroll_run::{Checkpoints, EsTraining, EsTrainingConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn run(folder: &Path, config: EsTrainingConfig, interrupt: Option<u64>) {
    let training: EsTraining = training(folder, config).with_csv().with_tensorboard();
    let mut task = Scripted::new([0.5, 1.5, 2.5]);
    task.interrupt = interrupt.map(|at| (at, training.interrupter()));
    training.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}"));
}

/// Stopped in the middle of an epoch, or killed there with a checkpoint of before.
fn continued(killed: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(30).with_checkpoint_every(7);
    run(folder.path(), config.clone(), Some(16));
    if killed {
        let last = Checkpoints::new(folder.path().join("checkpoints")).list().expect("lists").pop();
        fs::remove_dir_all(last.expect("saved")).expect("removed");
        let path = folder.path().join("log.csv");
        let text = fs::read_to_string(&path).expect("a table");
        fs::write(&path, &text[..text.len() - 5]).expect("cut off");
    }
    run(folder.path(), config, None);
    folder
}

/// The table without what depends on the machine.
fn table(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join("log.csv")).expect("a table");
    let rows: Result<Vec<BTreeMap<String, String>>, _> = reader.deserialize().collect();
    let mut rows = rows.expect("rows of one length");
    rows.iter_mut().for_each(|row| drop(row.remove("evaluations_per_second")));
    rows
}

#[test]
fn a_table_has_every_number_of_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), config(30), None);
    let (rows, lines) = (table(folder.path()), log(folder.path()));
    assert_eq!((rows.len(), lines.len()), (33, 33));
    for (row, line) in rows.iter().zip(&lines) {
        let line = line.as_object().expect("an object");
        for (key, value) in line {
            let found = &row[key];
            match value {
                Value::Number(number) => assert_eq!(found.parse::<f64>().ok(), number.as_f64(), "{key}"),
                other => assert_eq!(Some(found.as_str()), other.as_str(), "{key}"),
            }
        }
        assert!(row.iter().all(|(key, found)| found.is_empty() || line.contains_key(key)), "{row:?} {line:?}");
    }
}

#[test]
fn a_continued_table_equals_one_of_a_run_that_was_not_stopped() {
    let straight = tempfile::tempdir().expect("a folder");
    run(straight.path(), config(30).with_checkpoint_every(7), None);
    for killed in [false, true] {
        let folder = continued(killed);
        assert_eq!(table(folder.path()), table(straight.path()), "{killed}");
    }
}

/// Columns of before and now are in the table, and what an older one does not have is empty.
#[test]
fn a_table_gets_new_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(20).with_checkpoint_every(2);
    run(folder.path(), config.clone(), Some(1));
    let older = "generation,epoch,split,older\n0,1,train,4\n1,1,train,\"a, b\"\nno row\n99,1,train,5\n";
    fs::write(folder.path().join("log.csv"), older).expect("writes");
    run(folder.path(), config, None);
    let rows = table(folder.path());
    let older: Vec<&str> = rows.iter().map(|row| row["older"].as_str()).take(3).collect();
    assert_eq!(older, ["4", "a, b", ""]);
    assert!(rows.len() > 3 && rows.iter().all(|row| row["generation"] != "99"), "{rows:?}");
}

/// The checksum, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// A field of a protocol buffer.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
        let (number, after) = bytes.split_at(length);
        *bytes = after;
        number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                found.push((tag >> 3, Field::Number(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            5 => 4,
            other => panic!("a wire type of {other}"),
        };
        let (content, after) = bytes.split_at(length);
        bytes = after;
        found.push((tag >> 3, Field::Bytes(content)));
    }
    found
}

#[derive(Debug, PartialEq)]
enum Event {
    Version(String),
    /// The run begins again at this step.
    Start(u64),
    /// Numbers by name.
    Scalars(u64, BTreeMap<String, f32>),
}

fn event(data: &[u8]) -> Event {
    let (mut step, mut event) = (0, None);
    for (number, field) in fields(data) {
        match (number, field) {
            (1, Field::Bytes(time)) => assert!(f64::from_le_bytes(time.try_into().expect("8 bytes")) > 1.7e9),
            (2, Field::Number(found)) => step = found,
            (3, Field::Bytes(version)) => event = Some(Event::Version(String::from_utf8_lossy(version).into())),
            (7, Field::Bytes(session)) => {
                assert!(matches!(fields(session)[..], [(1, Field::Number(1))]), "START");
                event = Some(Event::Start(step));
            }
            (5, Field::Bytes(summary)) => {
                let value = |(_, value): (u64, Field<'_>)| {
                    let Field::Bytes(value) = value else { panic!("a number") };
                    let [(1, Field::Bytes(name)), (2, Field::Bytes(number))] = &fields(value)[..] else {
                        panic!("a value")
                    };
                    (String::from_utf8_lossy(name).into(), f32::from_le_bytes((*number).try_into().expect("4 bytes")))
                };
                event = Some(Event::Scalars(step, fields(summary).into_iter().map(value).collect()));
            }
            (other, _) => panic!("field {other}"),
        }
    }
    event.expect("something")
}

/// The events of a split, file by file in the order of their names.
fn events(folder: &Path, split: &str) -> Vec<Event> {
    let folder = folder.join("tensorboard").join(split);
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut events = Vec::new();
    for path in paths {
        let bytes = fs::read(path).expect("a file");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().expect("8 bytes")) as usize;
            let data = &rest[12..12 + length];
            assert_eq!(rest[8..12], masked(&rest[..8]), "the checksum of the length");
            assert_eq!(rest[12 + length..16 + length], masked(data), "the checksum of the data");
            events.push(event(data));
            rest = &rest[16 + length..];
        }
    }
    events
}

/// What TensorBoard shows: steps that came after one from which the run began again are dropped.
fn shown(events: Vec<Event>) -> BTreeMap<u64, BTreeMap<String, f32>> {
    let mut shown = BTreeMap::new();
    for event in events {
        match event {
            Event::Version(version) => assert_eq!(version, "brain.Event:2"),
            Event::Start(step) => drop(shown.split_off(&step)),
            Event::Scalars(step, mut scalars) => {
                scalars.remove("evaluations_per_second");
                shown.insert(step, scalars);
            }
        }
    }
    shown
}

#[test]
fn event_files_have_every_number_of_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), config(30), None);
    let files = events(folder.path(), "train");
    assert_eq!(files[0], Event::Version("brain.Event:2".to_owned()));
    assert!(!files.iter().any(|event| matches!(event, Event::Start(_))));
    for split in ["train", "valid"] {
        let found = shown(events(folder.path(), split));
        let lines = log(folder.path());
        let lines: Vec<&Value> = lines.iter().filter(|line| line["split"] == split).collect();
        assert_eq!(found.len(), lines.len());
        for line in lines {
            let scalars = &found[&line["generation"].as_u64().expect("a generation")];
            for (key, value) in line.as_object().expect("an object") {
                if !["generation", "epoch", "split"].contains(&key.as_str()) {
                    assert_eq!(Some(scalars[key]), value.as_f64().map(|number| number as f32), "{key}");
                }
            }
        }
    }
}

/// A run that was killed before its first checkpoint begins again.
#[test]
fn event_files_of_a_run_that_begins_again() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), config(30), Some(16));
    fs::remove_dir_all(folder.path().join("checkpoints")).expect("removed");
    run(folder.path(), config(5), None);
    let found = events(folder.path(), "train");
    assert!(found.contains(&Event::Start(0)));
    assert_eq!(shown(found).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(table(folder.path()).len(), 5 + 1);
}

#[test]
fn continued_event_files_show_what_one_run_shows() {
    let straight = tempfile::tempdir().expect("a folder");
    run(straight.path(), config(30).with_checkpoint_every(7), None);
    for killed in [false, true] {
        let folder = continued(killed);
        let found = events(folder.path(), "train");
        let from = if killed { 14 } else { 17 };
        assert!(found.contains(&Event::Start(from)), "{killed}: {found:?}");
        for split in ["train", "valid"] {
            assert_eq!(shown(events(folder.path(), split)), shown(events(straight.path(), split)), "{killed} {split}");
        }
    }
}
