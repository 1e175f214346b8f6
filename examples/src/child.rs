//! Child processes that can be ended with everything they have started.

use std::io;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a child is looked at.
const POLL: Duration = Duration::from_millis(20);
/// What a child has to end by itself once it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How a child ended.
#[derive(Debug)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// By us: its time was up.
    TimedOut,
    /// By us: the program is stopped.
    Interrupted,
}

/// Starts a child and waits for it. It is in a separate process group, which a terminal's Ctrl-C does not reach. We end it
/// together with what it has started. Where there are process groups, both end also if we are killed.
///
/// # Errors
///
/// What the system says of starting and ending processes.
pub fn run(command: &mut Command, limit: Option<Duration>, stop: &AtomicBool) -> io::Result<End> {
    #[cfg(unix)]
    command.process_group(0);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    #[cfg(unix)]
    let _watch = match Watch::over(&child) {
        Ok(watch) => watch,
        Err(error) => return terminate(&mut child).and(Err(error)),
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        let end = match limit {
            _ if stop.load(Ordering::Relaxed) => Some(End::Interrupted),
            Some(limit) if begun.elapsed() >= limit => Some(End::TimedOut),
            _ => None,
        };
        if let Some(end) = end {
            terminate(&mut child)?;
            return Ok(end);
        }
        sleep(POLL);
    }
}

/// Asks a child and its descendants to end, and ends them if they do not.
fn terminate(child: &mut Child) -> io::Result<()> {
    signal(child, "TERM")?;
    let asked = Instant::now();
    while child.try_wait()?.is_none() && asked.elapsed() < GRACE {
        sleep(POLL);
    }
    // Descendants may have outlived the child.
    signal(child, "KILL")?;
    child.wait().map(drop)
}

/// Ends a child's process group when this process is gone, however it ended: then the pipe that the watch reads from is closed.
#[cfg(unix)]
struct Watch(Child);

#[cfg(unix)]
impl Watch {
    fn over(child: &Child) -> io::Result<Self> {
        use std::process::Stdio;
        let group = child.id().to_string();
        let script = "read -r _; kill -s KILL -- \"-$0\" 2> /dev/null";
        let mut watch = Command::new("sh");
        watch.args(["-c", script, &group]).process_group(0).stdin(Stdio::piped());
        watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }
}

#[cfg(unix)]
impl Drop for Watch {
    /// The child has ended: there is nothing to watch.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to the child's process group. The standard library cannot, and a shell is where there are signals; a group
/// that is gone already is no error.
#[cfg(unix)]
fn signal(child: &mut Child, name: &str) -> io::Result<()> {
    let group = child.id().to_string();
    let script = "kill -s \"$0\" -- \"-$1\" 2> /dev/null";
    Command::new("sh").args(["-c", script, name, &group]).status().map(drop)
}

#[cfg(not(unix))]
fn signal(child: &mut Child, _name: &str) -> io::Result<()> {
    if child.try_wait()?.is_none() { child.kill() } else { Ok(()) }
}
