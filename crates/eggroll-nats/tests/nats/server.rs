//! A separate server for every test.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set where the tests must not pass without a server.
const REQUIRED: &str = "EGGROLL_REQUIRE_NATS";

/// Says that a test cannot run here, where that may be.
pub fn skip(reason: &str) {
    assert!(env::var_os(REQUIRED).is_none(), "{reason}, and {REQUIRED} is set");
    eprintln!("skipped: {reason}");
}

/// A server with JetStream on a free port, and its store; killed when dropped.
pub struct Server {
    pub folder: TempDir,
    host: &'static str,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts one; `None` if there is no program to start.
    pub fn start() -> Option<Self> {
        Self::with("127.0.0.1", |_| String::new())
    }

    /// Starts one that listens on `host`, with more lines of configuration, which may name files of its folder.
    pub fn with(host: &'static str, lines: impl FnOnce(&TempDir) -> String) -> Option<Self> {
        if Command::new("nats-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            skip("there is no nats-server here (scripts/nats-server installs it)");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let port = TcpListener::bind((host, 0)).and_then(|socket| socket.local_addr()).expect("a free port").port();
        let store = folder.path().join("store");
        let own = format!("listen: \"{host}:{port}\"\njetstream {{ store_dir: {store:?} }}\n");
        fs::write(folder.path().join("server.conf"), own + &lines(&folder)).expect("writes");
        let process = spawn(&folder);
        let mut server = Self { folder, host, port, process };
        assert!(server.wait(), "the server ends at its start");
        Some(server)
    }

    pub fn url(&self) -> String {
        self.url_at(self.host)
    }

    /// Its address by another name of its machine.
    pub fn url_at(&self, host: &str) -> String {
        format!("nats://{host}:{}", self.port)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process.kill().expect("SIGKILL");
        self.process.wait().expect("is gone");
    }

    /// Starts it again after [`kill`](Self::kill), with what it had.
    pub fn restart(&mut self) {
        assert!(self.try_restart(), "the server ends at its start");
    }

    /// [`restart`](Self::restart); whether it listens, and has not ended by itself.
    pub fn try_restart(&mut self) -> bool {
        self.process = spawn(&self.folder);
        self.wait()
    }

    fn wait(&mut self) -> bool {
        let (start, host) = (Instant::now(), if self.host == "0.0.0.0" { "127.0.0.1" } else { self.host });
        while TcpStream::connect((host, self.port)).is_err() {
            if self.process.try_wait().expect("is ours").is_some() {
                return false;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

fn spawn(folder: &TempDir) -> Child {
    let log = fs::File::create(folder.path().join("server.log")).expect("a file");
    let mut command = Command::new("nats-server");
    command.arg("-c").arg(folder.path().join("server.conf")).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("starts")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
