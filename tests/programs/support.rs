//! Starting the examples, and their results.

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer, also on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(100);
/// How often a program is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Settings of `mnist` that are trained in a moment.
pub const SMALL: [&str; 8] = ["--population", "8", "--batch", "4", "--hidden", "4", "--evaluate-every", "50"];

/// The path of a built example: next to the folder of this test.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let path = test.ancestors().nth(2).expect("target/debug").join("examples").join(name);
    assert!(path.is_file(), "no {}: run cargo build --workspace --examples", path.display());
    path
}

/// A folder for the outputs of one test.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Four files in the format of MNIST, small ones: 40 images of noise for training and 20 for tests.
    pub fn digits(&self) -> String {
        self.digits_of(28)
    }

    /// The same of images with sides of so many pixels.
    pub fn digits_of(&self, side: u8) -> String {
        let folder = self.path("digits");
        fs::create_dir_all(&folder).expect("a folder");
        for (name, count) in [("train", 40u8), ("t10k", 20)] {
            let noise =
                (0..u32::from(count) * u32::from(side).pow(2)).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
            let images = [&[0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side][..], &noise.collect::<Vec<u8>>()];
            let labels = [&[0, 0, 8, 1, 0, 0, 0, count][..], &(0..count).map(|i| i % 10).collect::<Vec<u8>>()];
            for (kind, bytes) in [("images-idx3", images), ("labels-idx1", labels)] {
                let path = format!("{folder}/{name}-{kind}-ubyte");
                fs::write(&path, bytes.concat()).expect("writes");
                assert!(Command::new("gzip").args(["-f", &path]).status().expect("gzip").success());
            }
        }
        folder
    }

    /// A short text.
    pub fn text(&self) -> String {
        let path = self.path("text");
        fs::write(&path, "to be or not to be that is the question ".repeat(100)).expect("writes");
        path
    }

    /// The run of [`mnist`](Self::mnist) is continued.
    pub fn mnist_resumed(&self) -> Command {
        let mut command = Command::new(example("mnist"));
        command.args([&self.digits(), "--resume", "--out", &self.path("out")]);
        command
    }

    /// `mnist` of small data and settings, in the folder `out`.
    pub fn mnist(&self, more: &[&str]) -> Command {
        let mut command = Command::new(example("mnist"));
        command.arg(self.digits()).args(SMALL).args(["--out", &self.path("out")]).args(more);
        command
    }
}

/// Sends a signal to a process.
pub fn signal(id: u32, name: &str) {
    let kill = format!("kill -s {name} {id}");
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
}

/// Whether these tests were started with a signal ignored, by `nohup` or in the background of a script: so is it for what they start.
pub fn is_ignored(name: &str) -> bool {
    let kill = format!("kill -s {name} $$");
    Command::new("sh").args(["-c", &kill]).status().expect("a shell").success()
}

/// Waits until a process has a handler of TERM, which Linux tells; elsewhere for as long as that may take.
pub fn wait_until_watched(id: u32) {
    let begun = Instant::now();
    let is_watched = || -> Option<bool> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(caught.trim(), 16).ok()? >> 14 & 1 == 1)
    };
    while !is_watched().unwrap_or(begun.elapsed() > Duration::from_secs(1)) {
        assert!(begun.elapsed() < PATIENCE, "process {id} has no handler of TERM");
        sleep(POLL);
    }
}

/// A program that runs, with files for what it prints.
pub struct Running {
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, place: &Place) -> Self {
        let [output, errors] = ["stdout", "stderr"].map(|name| PathBuf::from(place.path(name)));
        let [out, err] = [&output, &errors].map(|path| File::create(path).expect("a file"));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().expect("starts");
        Self { child, output, errors }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed `words`.
    pub fn wait_for(&self, words: &str) {
        self.wait_until(words, || self.said().contains(words));
    }

    pub fn wait_until(&self, what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}: {}", self.said());
            sleep(POLL);
        }
    }

    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits for the end, or for `limit`.
    pub fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return Some(status);
            }
            if begun.elapsed() >= limit {
                return None;
            }
            sleep(POLL);
        }
    }

    pub fn end(mut self) -> Ended {
        let status = self.ended_within(PATIENCE);
        if status.is_none() {
            let _ = self.child.kill();
        }
        let status = status.unwrap_or_else(|| panic!("did not end: {}", self.said()));
        let read = |path: &Path| fs::read_to_string(path).expect("text");
        Ended { status: shell_status(status), output: read(&self.output), errors: read(&self.errors) }
    }

    fn said(&self) -> String {
        [&self.output, &self.errors].map(|path| fs::read_to_string(path).unwrap_or_default()).concat()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The exit status as shells count it.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().expect("a signal"))
}

/// What a program left.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub output: String,
    pub errors: String,
}

impl Ended {
    /// The object of the `RESULT` line, of which there is one.
    pub fn result(&self) -> Value {
        let lines: Vec<&str> = self.output.lines().filter_map(|line| line.strip_prefix("RESULT ")).collect();
        assert_eq!(lines.len(), 1, "{self:?}");
        serde_json::from_str(lines[0]).expect("JSON")
    }
}

/// Runs to the end.
pub fn run(command: &mut Command, place: &Place) -> Ended {
    Running::start(command, place).end()
}
