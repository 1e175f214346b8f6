//! INT, TERM and HUP: the first ends the run after its generation, the second at once.

#[cfg(not(unix))]
mod console;
#[cfg(unix)]
mod ignored;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use console as system;
#[cfg(unix)]
use unix as system;

use crate::{Ending, Failure, trace};
use eggroll::run::{Checkpoints, Interrupter, print_note, terminal};
use std::env;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The variable with the seconds that a run has to end by itself after the first signal.
pub const GRACE: &str = "EGGROLL_GRACE_SECONDS";
/// Those seconds unless it is set: many times a generation and a checkpoint of the examples, and no longer than somebody waits who
/// has stopped a program.
const GRACE_SECONDS: f64 = 30.0;
/// What `--help` says of signals.
pub const HELP: &str = "Signals: INT (Ctrl-C), TERM and HUP stop the program after its generation, with exit status 75.\n\
A second one, or EGGROLL_GRACE_SECONDS (30) after the first, ends it at once, with 128 + signal.";
/// What the last words may take. Standard error may be a pipe that nobody reads.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What is added to the number of a signal in the exit status of a program that it ended.
const BY_SIGNAL: i32 = 128;

/// Whether the program was told to stop.
#[derive(Clone)]
pub struct Signals {
    interrupter: Interrupter,
    came: Arc<AtomicBool>,
}

impl Signals {
    /// An interrupter that the first signal stops, among others.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Whether a signal came. The interrupter may also have been stopped by the program.
    pub fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }

    /// An error once a signal came, for work that has no result unless it is whole.
    ///
    /// # Errors
    ///
    /// That the work was stopped.
    pub fn check(&self) -> Result<(), Failure> {
        if self.came() { Err("stopped by a signal".into()) } else { Ok(()) }
    }

    /// Set when a signal comes.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.came
    }

    /// How a run ends now that has not done all that it was to do.
    pub fn ending(&self) -> Ending {
        if self.came() { Ending::Stopped } else { Ending::Finished }
    }
}

/// Watches INT, TERM and HUP, but not a signal that was ignored when the program started, as `nohup` ignores HUP. On other systems
/// than Unix it watches Ctrl-C. The first signal stops the interrupter, and the run is to end after `what`; a second one, or the seconds
/// of [`GRACE`], end the process with status 128 + signal. `kept` says then what is kept of the run, and what is lost.
pub fn on_signals(what: &'static str, kept: impl Fn() -> String + Send + Sync + 'static) -> Signals {
    let signals = Signals { interrupter: Interrupter::new(), came: Arc::default() };
    let watch = Watch { signals: signals.clone(), what, grace: grace(), kept: Arc::new(kept) };
    if let Err(error) = system::watch(move |signal| watch.on(signal)) {
        say(&format!("warning: signals will end the run at once: {error}"));
    }
    signals
}

/// What is kept of a run with checkpoints in its folder.
pub fn checkpoints_in(folder: &Path) -> impl Fn() -> String + Send + Sync + 'static {
    let checkpoints = Checkpoints::new(folder.join("checkpoints"));
    let folder = folder.to_owned();
    move || match checkpoints.list().ok().and_then(|mut paths| paths.pop()) {
        Some(latest) => format!("kept: {}; what came later is lost. Continue with --resume", latest.display()),
        None => format!("{} has no checkpoint: the run is lost", folder.display()),
    }
}

/// What is kept of a run without checkpoints.
pub fn nothing() -> String {
    "nothing is kept of the run".to_owned()
}

/// What happens when a signal comes.
struct Watch {
    signals: Signals,
    what: &'static str,
    grace: Duration,
    kept: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Watch {
    fn on(&self, signal: i32) {
        let name = system::name(signal);
        if self.signals.came.swap(true, Ordering::Relaxed) {
            at_once(signal, || format!("{name}: ended at once; {}", (self.kept)()));
        }
        self.signals.interrupter.stop(Some(name));
        let (grace, kept) = (self.grace, self.kept.clone());
        let deadline = move || {
            thread::sleep(grace);
            let seconds = grace.as_secs_f64();
            at_once(signal, || format!("{name}: not ended within {seconds} s ({GRACE}), so at once; {}", kept()));
        };
        let limited = thread::Builder::new().name("deadline".to_owned()).spawn(deadline).is_ok();
        let limit = if limited { format!(", or {} s,", self.grace.as_secs_f64()) } else { String::new() };
        let line = format!("{name}: stopping after {}; a second one{limit} stops at once", self.what);
        // The next signal must not wait until it is read.
        let _ = thread::Builder::new().spawn(move || say(&line));
    }
}

/// Ends the process. The trace, if there is one, is completed.
fn at_once(signal: i32, words: impl FnOnce() -> String) -> ! {
    let status = BY_SIGNAL + signal;
    // What is read and written on the way may block, and the end must not wait for it.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(LAST_WORDS);
        system::exit(status)
    });
    say(&words());
    if let Err(error) = trace::finish() {
        say(&format!("error: {error}"));
    }
    terminal::restore();
    system::exit(status)
}

/// A line on standard error, which may be closed.
fn say(line: &str) {
    print_note!("{line}");
}

fn grace() -> Duration {
    let default = Duration::from_secs_f64(GRACE_SECONDS);
    let Some(given) = env::var_os(GRACE) else { return default };
    let seconds = given.to_str().and_then(|text| text.trim().parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_else(|| {
        say(&format!("warning: {GRACE} must be a number of seconds, not {given:?}: using {GRACE_SECONDS}"));
        default
    })
}
