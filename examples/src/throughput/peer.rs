//! The same arithmetic in another library: runs the peer's script and reads its cells.

use super::cell::{Cell, GridPlace};
use super::columns::Column;
use crate::Failure;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

/// What is said by a process that has no memory left, if it says anything.
const NO_MEMORY: [&str; 5] =
    ["RESOURCE_EXHAUSTED", "MemoryError", "bad_alloc", "Out of memory", "Cannot allocate memory"];

/// A script that measures cells: `benches/peers/README.md` says what it prints.
#[derive(Clone, Debug)]
pub struct Peer {
    python: PathBuf,
    script: PathBuf,
    options: Vec<OsString>,
}

/// What a peer has measured.
#[derive(Debug, Default)]
pub struct PeerResult {
    /// Its versions and settings, as it prints them.
    pub header: String,
    /// What it has timed.
    pub cells: Vec<Cell>,
    /// Where it had not enough memory.
    pub out_of_memory: Vec<GridPlace>,
}

/// A line of the script behind its header: a cell, timed or left out.
#[derive(Deserialize)]
struct PeerLine {
    #[serde(flatten)]
    place: GridPlace,
    #[serde(default)]
    median_ms: Option<f64>,
    #[serde(default)]
    q1_ms: f64,
    #[serde(default)]
    q3_ms: f64,
    /// By memory: after any other failure the script ends.
    #[serde(default)]
    failed: Option<String>,
}

impl Peer {
    /// A script, what runs it, and its options.
    pub fn new(python: &Path, script: &Path, options: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { python: python.to_owned(), script: script.to_owned(), options }
    }

    /// Refuses a peer that is not installed, without measuring anything.
    ///
    /// # Errors
    ///
    /// What is missing, in one line.
    pub fn check(&self) -> Result<(), Failure> {
        let refuse = |reason: &str| -> Result<(), Failure> {
            let python = self.python.display();
            Err(format!("the peer is not installed: {python}: {reason} (benches/peers/README.md says how)").into())
        };
        match Command::new(&self.python).arg(&self.script).arg("--help").output() {
            Err(error) => refuse(&error.to_string()),
            Ok(output) if !output.status.success() => refuse(&last_words(&output)),
            Ok(_) => Ok(()),
        }
    }

    /// Runs the script. A cell that it dies of for want of memory is noted, and the cells behind it are measured by a new process.
    ///
    /// # Errors
    ///
    /// The script's last words, if it fails for another reason, and a line that it does not print.
    pub fn measure(&self) -> Result<PeerResult, Failure> {
        let (mut measured, mut done, mut died_at) = (PeerResult::default(), 0, None);
        loop {
            let output = self.start(died_at)?;
            done += read(&output.stdout, &mut measured)?;
            if output.status.success() {
                measured.cells = with_ratios(measured.cells);
                return Ok(measured);
            }
            // A process that does not even say which cell the one before it died of would never get farther.
            let stuck = measured.header.is_empty() || died_at.is_some_and(|cell| done <= cell);
            if stuck || !is_out_of_memory(&output) {
                return Err(format!("{}: {}", self.script.display(), last_words(&output)).into());
            }
            died_at = Some(done);
        }
    }

    /// Runs the script, from the beginning or behind the cell that a process has died of.
    fn start(&self, died_at: Option<usize>) -> Result<Output, Failure> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).args(&self.options);
        if let Some(cell) = died_at {
            command.args(["--died-at", &cell.to_string()]);
        }
        command.output().map_err(|error| format!("{}: {error}", self.python.display()).into())
    }
}

/// Reads the lines of one process; returns how many cells they are. A line that was cut off is none.
fn read(stdout: &[u8], measured: &mut PeerResult) -> Result<usize, Failure> {
    let text = String::from_utf8_lossy(stdout);
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    if let Some(header) = lines.next() {
        measured.header = header.to_owned();
    }
    let mut count = 0;
    for line in lines {
        let line: PeerLine =
            serde_json::from_str(line).map_err(|error| format!("the peer's line {line:?}: {error}"))?;
        count += 1;
        let PeerLine { place, median_ms, q1_ms, q3_ms, failed } = line;
        measured.out_of_memory.extend(failed.map(|_| place));
        measured.cells.extend(median_ms.map(|median_ms| Cell {
            peer: true,
            place,
            median_ms,
            q1_ms,
            q3_ms,
            ratio: None,
            modelled_ms: None,
            materialized_bytes: None,
            passes: None,
        }));
    }
    Ok(count)
}

/// Whether the process was killed, as Linux does where memory ends, or says that it found none.
fn is_out_of_memory(output: &Output) -> bool {
    let words = String::from_utf8_lossy(&output.stderr);
    is_killed(output.status) || NO_MEMORY.iter().any(|part| words.contains(part))
}

/// By signal 9; a shell in between makes 137 of it.
fn is_killed(status: ExitStatus) -> bool {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
        return true;
    }
    status.code() == Some(137)
}

/// The last line that the process wrote to standard error, or how it ended.
fn last_words(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(|| output.status.to_string(), str::to_owned)
}

fn with_ratios(mut cells: Vec<Cell>) -> Vec<Cell> {
    let is_inference = |cell: &Cell| cell.place.column == Column::Inference;
    let inference: Vec<_> = cells.iter().filter(|cell| is_inference(cell)).cloned().collect();
    for cell in cells.iter_mut().filter(|cell| !is_inference(cell)) {
        let (size, population) = (cell.place.size, cell.place.population);
        let base = inference.iter().find(|base| (base.place.size, base.place.population) == (size, population));
        cell.ratio = base.map(|base| cell.median_ms / base.median_ms);
    }
    cells
}
