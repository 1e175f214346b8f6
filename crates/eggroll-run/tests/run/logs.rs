//! Logs of a loop of one's own: a table, and event files of TensorBoard.

use eggroll_run::{CsvLog, Error, JsonLines, LogRow, RunError, TensorBoardLog};
use std::fs;
use std::path::Path;

fn row(generation: u64) -> LogRow {
    LogRow::training(generation).with("loss", 0.5 * generation as f64)
}

/// A table of generations 0 to 2, and then of a run that continues after the first.
fn continued(path: &Path, later: impl Fn(u64) -> LogRow) -> String {
    let mut log = CsvLog::open(path, 0).expect("opens");
    (0..3).for_each(|generation| log.write(row(generation)).expect("writes"));
    drop(log);
    let mut log = CsvLog::open(path, 1).expect("opens");
    assert_eq!(
        fs::read_to_string(path).expect("a table").lines().count(),
        4,
        "nothing is dropped before a row is written"
    );
    (1..3).for_each(|generation| log.write(later(generation)).expect("writes"));
    fs::read_to_string(path).expect("a table")
}

#[test]
fn a_table_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    let text = continued(&path, row);
    assert_eq!(text, "generation,split,loss\n0,train,0\n1,train,0.5\n2,train,1\n");
    let other = continued(&folder.path().join("other.csv"), |generation| LogRow::training(generation).with("x", 3.0));
    assert_eq!(other, "generation,split,loss,x\n0,train,0,\n1,train,,3\n2,train,,3\n");
}

/// Columns that come later are added, those that were declared are there at once.
#[test]
fn a_table_gets_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    let mut log = CsvLog::open(&path, 0).expect("opens");
    log.declare(["split", "generation", "a, b"]);
    log.write(row(0)).expect("writes");
    log.write(row(1).with("a, b", f64::NAN)).expect("writes");
    log.write(LogRow::validation(1).with("accuracy", 0.9)).expect("writes");
    log.write(row(2)).expect("writes");
    let expected = "split,generation,\"a, b\",loss,accuracy\n\
                    train,0,,0,\ntrain,1,NaN,0.5,\nvalid,1,,,0.9\ntrain,2,,1,\n";
    assert_eq!(fs::read_to_string(&path).expect("a table"), expected);
}

#[test]
fn a_table_is_written_once_and_names_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    let mut log = CsvLog::open(&path, 0).expect("opens");
    let second = CsvLog::open(&path, 0).expect_err("locked");
    assert!(matches!(second, Error::Run(RunError::InUse { .. })), "{second}");
    for name in ["loss", "generation", "split"] {
        let error = log.write(row(0).with(name, 1.0)).expect_err("refused");
        assert!(matches!(&error, Error::Run(RunError::LogColumn(found)) if found == name), "{error}");
    }
    assert!(!path.exists(), "nothing was written");
}

#[test]
fn a_row_that_cannot_be_written_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    let mut log = CsvLog::open(&path, 0).expect("opens");
    fs::create_dir(&path).expect("in its place");
    assert!(matches!(log.write(row(0)), Err(Error::Io { .. })));
    fs::remove_dir(&path).expect("removes");
    log.write(row(1).with("x", 1.0)).expect("writes");
    assert_eq!(fs::read_to_string(&path).expect("a table"), "generation,split,loss,x\n0,train,0,\n1,train,0.5,1\n");
}

#[test]
fn a_table_of_another_program_is_moved_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    fs::write(&path, "a,b\n1,2\n").expect("writes");
    let mut log = CsvLog::open(&path, 3).expect("opens");
    log.write(row(3)).expect("writes");
    assert_eq!(fs::read_to_string(&path).expect("a table"), "generation,split,loss\n3,train,1.5\n");
    assert_eq!(fs::read_to_string(folder.path().join("log.csv.previous-1")).expect("moved"), "a,b\n1,2\n");
}

/// The bytes of all files of a split, in the order of their names.
fn events(folder: &Path, split: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder.join(split)).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).expect("a file")).collect()
}

/// Contents of event files are those of the learner's, which its tests read.
#[test]
fn event_files_are_continued() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("events");
    let write = |generation: u64| {
        let mut log = TensorBoardLog::open(&folder, generation).expect("opens");
        assert!(matches!(TensorBoardLog::open(&folder, 0), Err(Error::Run(RunError::InUse { .. }))));
        log.write(row(generation)).expect("writes");
        log.write(LogRow::validation(generation).with("accuracy", 0.9)).expect("writes");
    };
    write(0);
    write(1);
    for (split, name) in [("train", "loss"), ("valid", "accuracy")] {
        let files = events(&folder, split);
        let has = |file: &[u8], text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(files.len() == 2 && files.iter().all(|file| has(file, "brain.Event:2") && has(file, name)));
        // The second file begins with a session log.
        assert!(files[1].len() > files[0].len());
    }
}

#[test]
fn json_lines_take_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.jsonl");
    let mut log = JsonLines::open(&path, 0).expect("opens");
    log.write(&row(0).with("bad", f64::NAN)).expect("writes");
    let text = fs::read_to_string(&path).expect("a log");
    assert_eq!(text, "{\"generation\":0,\"split\":\"train\",\"loss\":0.0,\"bad\":null}\n");
}
