//! Starting the examples, and their results.

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No program here takes longer, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(5);
/// Settings of `mnist` that are trained in a moment.
pub const SMALL: [&str; 8] = ["--population", "8", "--batch", "4", "--hidden", "4", "--evaluate-every", "50"];

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The path of a built example: next to the folder of this test.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let path = test.ancestors().nth(2).expect("target/debug").join("examples").join(name);
    assert!(path.is_file(), "no {}: run cargo build --workspace --examples", path.display());
    path
}

/// A folder for the outputs of one test.
pub struct OutputFolder(TempDir);

impl OutputFolder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Four small files in the format of MNIST: 40 images of noise for training and 20 for tests.
    pub fn digits(&self) -> String {
        let folder = self.path("digits");
        fs::create_dir_all(&folder).expect("a folder");
        for (name, count) in [("train", 40u8), ("t10k", 20)] {
            let noise = (0..u32::from(count) * 784).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
            let images = [&[0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28][..], &noise.collect::<Vec<u8>>()];
            let labels = [&[0, 0, 8, 1, 0, 0, 0, count][..], &(0..count).map(|i| i % 10).collect::<Vec<u8>>()];
            for (kind, bytes) in [("images-idx3", images), ("labels-idx1", labels)] {
                let path = format!("{folder}/{name}-{kind}-ubyte");
                fs::write(&path, bytes.concat()).expect("writes");
                assert!(Command::new("gzip").args(["-f", &path]).status().expect("gzip").success());
            }
        }
        folder
    }

    /// `mnist` with small data and settings, in the folder `out`.
    pub fn mnist(&self, more: &[&str]) -> Command {
        let mut command = Command::new(example("mnist"));
        command.arg(self.digits()).args(SMALL).args(["--out", &self.path("out")]).args(more);
        command
    }
}

/// A running program, with files for what it prints.
pub struct Running {
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, place: &OutputFolder) -> Self {
        let [output, errors] = ["stdout", "stderr"].map(|name| PathBuf::from(place.path(name)));
        let [out, err] = [&output, &errors].map(|path| File::create(path).expect("a file"));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().expect("starts");
        Self { child, output, errors }
    }

    /// Waits until it has printed `words`.
    pub fn wait_for(&self, words: &str) {
        let begun = Instant::now();
        while !self.said().contains(words) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {words}: {}", self.said());
            sleep(POLL);
        }
    }

    /// Sends a signal after a time, unless it has ended by then.
    pub fn signal_after(&mut self, time: Duration, name: &str) {
        sleep(time);
        if self.child.try_wait().expect("a child").is_none() {
            self.signal(name);
        }
    }

    pub fn signal(&self, name: &str) {
        let kill = format!("kill -s {name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
    }

    pub fn end(mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "did not end: {}", self.said());
            sleep(POLL);
        };
        let read = |path: &Path| fs::read_to_string(path).expect("text");
        let status = status.code().unwrap_or_else(|| 128 + status.signal().expect("a signal"));
        Ended { status, output: read(&self.output), errors: read(&self.errors) }
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

/// What a program left; the status as shells count it.
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
pub fn run(command: &mut Command, place: &OutputFolder) -> Ended {
    Running::start(command, place).end()
}
