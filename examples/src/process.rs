//! What every example does as a process: threads, exit status, a standard output that is closed.

use eggroll::run::print_note;
use std::any::Any;
use std::env;
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::thread;

/// How a program ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was to do.
    Finished,
    /// A signal, or `q` in the dashboard, stopped it before.
    Stopped,
}

impl Ending {
    /// What the `RESULT` line says under `"stopped"`.
    pub fn is_stopped(self) -> bool {
        self == Self::Stopped
    }
}

/// A program that does not watch for signals finishes.
impl From<()> for Ending {
    fn from((): ()) -> Self {
        Self::Finished
    }
}

/// Exit statuses.
mod status {
    pub const FINISHED: u8 = 0;
    pub const FAILED: u8 = 1;
    /// `EX_TEMPFAIL` of `sysexits.h`: to be tried again.
    pub const STOPPED: u8 = 75;
    /// 128 and the number of PIPE: the signal ends a program whose output has lost its reader.
    pub const OUTPUT_CLOSED: u8 = 141;
}

/// The variable that rayon takes the number of its threads from.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Runs an example: an error is printed, and the exit status says how it ended, as [`status_of`].
pub fn main_of<T: Into<Ending>, E: Display>(run: impl FnOnce() -> Result<T, E>) -> ExitCode {
    ExitCode::from(status_of(run))
}

/// Runs an example and returns its exit status:
///
/// - 0: it has finished
/// - 75: a signal stopped it
/// - 1: an error, which is printed
/// - 141: its standard output has lost its reader
pub fn status_of<T: Into<Ending>, E: Display>(run: impl FnOnce() -> Result<T, E>) -> u8 {
    bound_threads();
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        if !is_output_closed(panic.payload()) {
            others(panic);
        }
    }));
    match panic::catch_unwind(AssertUnwindSafe(|| run().map(Into::into))) {
        Ok(Ok(Ending::Finished)) => status::FINISHED,
        Ok(Ok(Ending::Stopped)) => status::STOPPED,
        Ok(Err(error)) => {
            print_note!("error: {error}");
            status::FAILED
        }
        Err(payload) if is_output_closed(&*payload) => status::OUTPUT_CLOSED,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Whether `println!` or `eprintln!` panicked because the reader has gone.
fn is_output_closed(payload: &(dyn Any + Send)) -> bool {
    let broken = |text: &str| text.starts_with("failed printing to std") && text.contains("Broken pipe");
    payload.downcast_ref::<String>().is_some_and(|text| broken(text))
}

/// Starts rayon's threads: as many as asked for, and no more than there are cores.
fn bound_threads() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (threads, warning) = threads(env::var(THREADS).ok().as_deref(), cores);
    if let Some(warning) = warning {
        print_note!("warning: {warning}");
    }
    // There are threads already only if this has been called before.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
}

/// How many threads there are to be, and what is to be said of it. As in rayon, 0 stands for all cores.
fn threads(asked: Option<&str>, cores: usize) -> (usize, Option<String>) {
    let Some(asked) = asked else { return (cores, None) };
    match asked.parse() {
        Ok(0) => (cores, None),
        Ok(count) if count <= cores => (count, None),
        Ok(count) => (cores, Some(format!("{THREADS}={count} is more than the {cores} cores here: {cores} threads"))),
        Err(_) => (cores, Some(format!("{THREADS} must be a number of threads, not {asked:?}: {cores} threads"))),
    }
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn threads_are_bounded_by_the_cores() {
        let said = |asked| threads(asked, 4);
        assert_eq!([None, Some("0"), Some("4"), Some("1")].map(said), [(4, None), (4, None), (4, None), (1, None)]);
        for wrong in ["5", "100000", "18446744073709551615", "18446744073709551616", "-1", "abc", ""] {
            let (count, warning) = said(Some(wrong));
            assert_eq!(count, 4, "{wrong}");
            assert!(warning.is_some_and(|warning| warning.contains(wrong) && warning.contains("RAYON_NUM_THREADS")));
        }
    }
}
