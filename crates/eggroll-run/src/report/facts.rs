//! Facts that no other file of a run has: machine, time, commit and parameters.

use super::settings;
use crate::diagnostics::Diagnosis;
use chrono::DateTime;
use eggroll_core::{InstructionSet, ParameterEntry, ParameterKind, ParameterTable, Role};
use eggroll_train::Forecast;
use serde::{Deserialize, Serialize};
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file of a run's facts.
pub(super) const FILE: &str = "report.json";
/// Titles of the parameter table.
pub(super) const PARAMETERS: [&str; 7] =
    ["parameter", "shape", "values", "kind", "role", "noise of a pair (bytes)", "learns"];

/// The facts of a run for its page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    /// Processes that have trained, the first one first.
    pub sessions: Vec<Session>,
    /// Rows of the parameter table.
    pub parameters: Vec<Vec<String>>,
    /// Statistics of the latest checkpoint.
    pub statistics: Option<Statistics>,
    /// The forecast of estimates in the first generation of a process.
    #[serde(default)]
    pub forecast: Option<Forecast>,
}

/// Statistics of all parameters after some generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Statistics {
    pub generation: u64,
    pub diagnosis: Diagnosis,
}

/// A process that trains, and its machine; not the machine's name, and nothing about the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Seconds since 1970 at its beginning.
    pub began: u64,
    /// Seconds since 1970 when this was written.
    pub written: u64,
    /// Generations done at its beginning.
    pub from: u64,
    /// Generations done when this was written.
    pub until: u64,
    /// Whether it has ended the run in good order.
    pub ended: bool,
    /// Operating system and architecture.
    pub system: String,
    /// The processor's name, where the system tells.
    pub processor: Option<String>,
    /// Logical processors that the process may use.
    pub threads: usize,
    /// Bytes of memory, where the system tells.
    pub memory: Option<u64>,
    /// The instruction set of eggroll's CPU kernels.
    pub instructions: String,
    /// Burn's name of the device.
    pub device: String,
    /// The commit of the working directory, and whether files differ from it, if git knows it.
    pub commit: Option<String>,
    /// eggroll's version.
    pub version: String,
    /// `release` or `dev`, which is slower.
    pub profile: String,
}

impl Facts {
    /// The facts in the folder; empty if they cannot be read.
    pub fn read(folder: &Path) -> Self {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

/// Rows of the parameter table, under [`PARAMETERS`].
pub(super) fn parameters(table: &ParameterTable) -> Vec<Vec<String>> {
    let row = |(position, entry): (usize, &ParameterEntry)| {
        let values: usize = entry.shape.iter().product();
        let kind = if entry.kind == ParameterKind::Float { "float" } else { "integer" };
        let role = match entry.role {
            Role::LowRank { rank } => format!("low rank {rank}"),
            Role::Dense => "dense".to_owned(),
            Role::Sparse => "sparse".to_owned(),
            Role::Frozen => "frozen".to_owned(),
        };
        let (shape, noise) = (format!("{:?}", entry.shape), table.noise_bytes(position).to_string());
        vec![entry.path.clone(), shape, values.to_string(), kind.to_owned(), role, noise]
    };
    table.entries().iter().enumerate().map(row).collect()
}

impl Session {
    /// This process, which begins now, on a device of this name.
    pub fn now(device: impl Into<String>, from: u64) -> Self {
        let began = seconds();
        Self {
            began,
            written: began,
            from,
            until: from,
            ended: false,
            system: format!("{OS} {ARCH}"),
            processor: of_line("/proc/cpuinfo", "model name").filter(|name| !name.is_empty()),
            threads: available_parallelism().map_or(1, usize::from),
            memory: of_line("/proc/meminfo", "MemTotal").and_then(|size| {
                let kibibytes: u64 = size.split(' ').next()?.parse().ok()?;
                Some(kibibytes * 1024)
            }),
            instructions: InstructionSet::detected().name().to_owned(),
            device: device.into(),
            commit: commit(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_owned(),
        }
    }

    /// Seconds that it has taken.
    pub fn seconds(&self) -> u64 {
        self.written.saturating_sub(self.began)
    }

    /// Machine, commit and time as lines of a page.
    pub fn facts(&self) -> Vec<(String, String)> {
        let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
        let unknown = || "unknown".to_owned();
        [
            ("began", date(self.began)),
            ("written", date(self.written)),
            ("device", self.device.clone()),
            ("processor", self.processor.clone().unwrap_or_else(unknown)),
            ("threads", self.threads.to_string()),
            ("memory", self.memory.map_or_else(unknown, gibibytes)),
            ("instruction set", self.instructions.clone()),
            ("system", self.system.clone()),
            ("eggroll", format!("{}, {} profile", self.version, self.profile)),
            ("commit", self.commit.clone().unwrap_or_else(unknown)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Takes the time.
    pub(super) fn write(&mut self, until: u64, ended: bool) {
        (self.written, self.until, self.ended) = (seconds(), until, ended);
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The value after the first line that begins with a name, in a file of Linux.
fn of_line(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(settings::text(&line.split_once(':')?.1.trim().into()))
}

/// A point in time in UTC.
pub(super) fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| "unknown".to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Suffix of a commit's name if files have changed since.
pub(super) const CHANGED: &str = " with changes";

/// The commit that is checked out in the working directory, and whether files have changed since.
fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        // It must ask nothing and fetch nothing.
        let quiet = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1")];
        let output = Command::new("git").args(words).envs(quiet).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]).filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    // Without the lock of the index: somebody may be committing.
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    Some(if changes.is_empty() { commit } else { commit + CHANGED })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00 UTC");
        assert_eq!(date(u64::MAX), "unknown");
    }
}
