//! What no other file of a run says: on which machine it ran, when, of which commit, and what its parameters are.

use super::settings;
use crate::diagnostics::Diagnosis;
use eggroll_core::{InstructionSet, ParameterKind, ParameterTable, Role};
use serde::{Deserialize, Serialize};
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file of a run's facts.
pub(super) const FILE: &str = "report.json";

/// What is kept of a run for its page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    /// Processes that have trained, the first one first.
    pub sessions: Vec<Session>,
    pub parameters: Vec<Parameter>,
    /// Of the latest checkpoint.
    pub statistics: Option<Statistics>,
}

/// Statistics of all parameters after some generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Statistics {
    pub generation: u64,
    pub diagnosis: Diagnosis,
}

/// A line of the parameter table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Parameter {
    pub path: String,
    pub shape: Vec<usize>,
    pub values: usize,
    pub kind: String,
    pub role: String,
    /// Bytes of a pair's noise.
    pub noise: usize,
}

/// A process that trains, and the machine that it runs on. Not its name, and nothing of who runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Seconds since 1970 at its begin.
    pub began: u64,
    /// Seconds since 1970 when this was written.
    pub written: u64,
    /// Generations done at its begin.
    pub from: u64,
    /// Generations done when this was written.
    pub until: u64,
    /// Whether it has ended the run in good order, or still trains.
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
    /// The commit of the working directory, if it is a git repository.
    pub commit: Option<String>,
    /// eggroll's version.
    pub version: String,
    /// `release` or `dev`, which is slower.
    pub profile: String,
}

impl Facts {
    /// What the folder has, or nothing: facts that cannot be read are none.
    pub fn read(folder: &Path) -> Self {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl Parameter {
    /// The lines of a table.
    pub fn of(table: &ParameterTable) -> Vec<Self> {
        let line = |(position, entry): (usize, &eggroll_core::ParameterEntry)| Self {
            path: entry.path.clone(),
            shape: entry.shape.clone(),
            values: entry.shape.iter().product(),
            kind: if entry.kind == ParameterKind::Float { "float" } else { "integer" }.to_owned(),
            role: match entry.role {
                Role::LowRank { rank } => format!("low rank {rank}"),
                Role::Dense => "dense".to_owned(),
                Role::Sparse => "sparse".to_owned(),
                Role::Frozen => "frozen".to_owned(),
            },
            noise: table.noise_bytes(position),
        };
        table.entries().iter().enumerate().map(line).collect()
    }
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
            commit: std::env::current_dir().ok().and_then(|folder| commit(&folder)),
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
            ("commit", self.commit.clone().unwrap_or_else(|| "no git repository".to_owned())),
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

/// The value behind the first line that begins with a name, in a file of Linux.
fn of_line(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(settings::text(&line.split_once(':')?.1.trim().into()))
}

/// A point in time in UTC.
pub(super) fn date(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", month + 1, days + 1)
}

/// The commit that is checked out in the git repository around a folder. Read from its files: a process that trains with others, as ranks of
/// MPI do, had better start no program.
pub fn commit(folder: &Path) -> Option<String> {
    let found = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let git = if found.is_dir() { found } else { linked(&found, "gitdir: ")? };
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return digest(&head) };
    // A worktree has its HEAD, and its branches elsewhere.
    let common = linked(&git.join("commondir"), "").unwrap_or_else(|| git.clone());
    if let Ok(text) = fs::read_to_string(common.join(name)) {
        return digest(&text);
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| line.strip_suffix(name)).and_then(digest)
}

/// The path that a file of git holds behind a word, relative to its folder.
fn linked(file: &Path, word: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    Some(file.parent()?.join(text.trim().strip_prefix(word)?))
}

/// A commit's name, and nothing else.
fn digest(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in cases {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn commits_are_found_wherever_git_keeps_them() {
        let place = tempfile::tempdir().expect("a folder");
        let (first, second) = ("1".repeat(40), "2".repeat(40));
        let git = place.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).expect("a folder");
        fs::create_dir_all(git.join("worktrees/other")).expect("a folder");
        let inner = place.path().join("a/b");
        fs::create_dir_all(&inner).expect("a folder");
        assert_eq!(commit(&inner), None);
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("writes");
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{second} refs/heads/main\n")).expect("writes");
        assert_eq!(commit(&inner), Some(second.clone()));
        fs::write(git.join("refs/heads/main"), format!("{first}\n")).expect("writes");
        assert_eq!(commit(&inner), Some(first.clone()));
        // A worktree.
        fs::write(inner.join(".git"), format!("gitdir: {}\n", git.join("worktrees/other").display())).expect("writes");
        fs::write(git.join("worktrees/other/HEAD"), "ref: refs/heads/main\n").expect("writes");
        fs::write(git.join("worktrees/other/commondir"), "../..\n").expect("writes");
        assert_eq!(commit(&inner), Some(first));
        fs::write(git.join("worktrees/other/HEAD"), format!("{second}\n")).expect("writes");
        assert_eq!(commit(&inner), Some(second));
        fs::write(git.join("worktrees/other/HEAD"), "<script>").expect("writes");
        assert_eq!(commit(&inner), None);
    }
}
