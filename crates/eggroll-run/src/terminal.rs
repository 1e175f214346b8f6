//! Chooses terminal output: dashboard, table with progress bar, or plain lines.
//!
//! A run takes the terminal when it begins and returns it when it ends. Programs print with [`print_line!`](crate::print_line) and
//! [`print_note!`](crate::print_note) meanwhile. A dashboard has the whole screen, and lines wait until it ends; a progress bar makes room.
//! Without either, or if the output is not a terminal, the macros are `println!` and `eprintln!`.
//!
//! # Example
//!
//! ```
//! use eggroll_run::{print_line, print_note};
//!
//! print_line!("generation  accuracy");
//! print_note!("warning: sigma may be too large");
//! ```

use eggroll_core::sync::locked;
#[cfg(feature = "learner")]
use indicatif::ProgressBar;
use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::sync::Mutex;

/// Prints a line on standard output, as `println!` does, once the terminal is free.
///
/// # Panics
///
/// As `println!`, if standard output cannot be written.
#[macro_export]
macro_rules! print_line {
    ($($arguments:tt)*) => { $crate::terminal::line(::std::format_args!($($arguments)*)) };
}

/// Prints a line on standard error once the terminal is free. Unlike `eprintln!`, it ignores a closed standard error.
#[macro_export]
macro_rules! print_note {
    ($($arguments:tt)*) => { $crate::terminal::note(::std::format_args!($($arguments)*)) };
}

/// The stream of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputStream {
    Output,
    Errors,
}

/// The only terminal of a process.
struct Screen {
    /// Number of open dashboards.
    dashboards: usize,
    /// Lines that wait until dashboards end.
    held: Vec<(OutputStream, String)>,
    /// Progress bars by number, without bars that have made room.
    #[cfg(feature = "learner")]
    bars: Vec<(u64, ProgressBar)>,
}

static SCREEN: Mutex<Screen> = Mutex::new(Screen {
    dashboards: 0,
    held: Vec::new(),
    #[cfg(feature = "learner")]
    bars: Vec::new(),
});

/// The function behind [`print_line!`](crate::print_line).
pub fn line(text: impl Display) {
    say(OutputStream::Output, text.to_string());
}

/// The function behind [`print_note!`](crate::print_note).
pub fn note(text: impl Display) {
    say(OutputStream::Errors, text.to_string());
}

/// Returns the terminal although a run has it, and prints waiting lines: for programs that exit at once, before a dashboard can do so.
pub fn restore() {
    let mut screen = locked(&SCREEN);
    if screen.dashboards > 0 {
        screen.dashboards = 0;
        #[cfg(feature = "tui")]
        owner::leave_dashboard();
        screen.release();
    }
}

fn say(stream: OutputStream, text: String) {
    let mut screen = locked(&SCREEN);
    if screen.dashboards > 0 {
        screen.held.push((stream, text));
        return;
    }
    #[cfg(feature = "learner")]
    let bars: Vec<ProgressBar> = screen.bars.iter().map(|(_, bar)| bar.clone()).collect();
    #[cfg(feature = "learner")]
    return around(&bars, || print(stream, &text));
    #[cfg(not(feature = "learner"))]
    print(stream, &text);
}

#[expect(clippy::print_stdout, reason = "the one place that prints")]
fn print(stream: OutputStream, text: &str) {
    match stream {
        OutputStream::Output => println!("{text}"),
        // Standard error may be closed.
        OutputStream::Errors => drop(writeln!(stderr(), "{text}")),
    }
}

impl Screen {
    /// Prints waiting lines and ignores errors: this may run while a panic unwinds.
    fn release(&mut self) {
        for (stream, text) in self.held.drain(..) {
            let _ = match stream {
                OutputStream::Output => writeln!(stdout(), "{text}"),
                OutputStream::Errors => writeln!(stderr(), "{text}"),
            };
        }
    }
}

#[cfg(feature = "learner")]
pub(crate) use owner::Owner;
#[cfg(feature = "learner")]
use owner::around;

#[cfg(feature = "learner")]
mod owner {
    use super::{SCREEN, Screen};
    #[cfg(feature = "tui")]
    use crossterm::event::DisableMouseCapture;
    #[cfg(feature = "tui")]
    use crossterm::execute;
    #[cfg(feature = "tui")]
    use crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode};
    use eggroll_core::sync::locked;
    use indicatif::ProgressBar;
    use std::any::Any;
    #[cfg(feature = "tui")]
    use std::io::stdout;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The right to the terminal, until it is dropped.
    pub(crate) enum Owner {
        #[cfg(feature = "tui")]
        Dashboard,
        Bar {
            number: u64,
            bar: ProgressBar,
        },
    }

    impl Owner {
        /// For a dashboard, which has the screen alone.
        #[cfg(feature = "tui")]
        pub fn dashboard() -> Self {
            locked(&SCREEN).dashboards += 1;
            Self::Dashboard
        }

        /// For a progress bar, which makes room for lines.
        pub fn bar(bar: ProgressBar) -> Self {
            static NUMBERS: AtomicU64 = AtomicU64::new(0);
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            locked(&SCREEN).bars.push((number, bar.clone()));
            Self::Bar { number, bar }
        }

        /// Runs the user's code, which may print in its own way, with the bar hidden.
        pub fn aside<R>(&self, run: impl FnOnce() -> R) -> R {
            let (number, bar) = match self {
                #[cfg(feature = "tui")]
                Self::Dashboard => return run(),
                Self::Bar { number, bar } => (number, bar),
            };
            // Output of the code must not ask the bar for room again.
            locked(&SCREEN).remove(*number);
            let result = bar.suspend(|| catch_unwind(AssertUnwindSafe(run)));
            locked(&SCREEN).bars.push((*number, bar.clone()));
            unwound(result)
        }
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            let mut screen = locked(&SCREEN);
            match self {
                Self::Bar { number, bar } => {
                    screen.remove(*number);
                    bar.finish_and_clear();
                }
                #[cfg(feature = "tui")]
                Self::Dashboard => {
                    screen.dashboards = screen.dashboards.saturating_sub(1);
                    if screen.dashboards == 0 {
                        screen.release();
                    }
                }
            }
        }
    }

    impl Screen {
        fn remove(&mut self, number: u64) {
            self.bars.retain(|(other, _)| *other != number);
        }
    }

    /// Runs code with all bars hidden. A panic must not unwind through the bars, whose locks it would poison.
    pub(crate) fn around(bars: &[ProgressBar], run: impl FnOnce()) {
        fn nest(
            bars: &[ProgressBar],
            run: Box<dyn FnOnce() -> Result<(), Box<dyn Any + Send>> + '_>,
        ) -> Result<(), Box<dyn Any + Send>> {
            match bars {
                [] => run(),
                [first, others @ ..] => first.suspend(|| nest(others, run)),
            }
        }
        unwound(nest(bars, Box::new(|| catch_unwind(AssertUnwindSafe(run)))));
    }

    fn unwound<R>(result: Result<R, Box<dyn Any + Send>>) -> R {
        match result {
            Ok(result) => result,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Does the same as Burn's dashboard at its end.
    #[cfg(feature = "tui")]
    pub(crate) fn leave_dashboard() {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen);
    }
}

#[cfg(all(test, feature = "tui"))]
mod tests {
    use super::*;

    /// Lines wait while a dashboard is open, in their order, and code that has made room for itself may print.
    #[test]
    fn a_dashboard_holds_lines_back_and_a_bar_does_not() {
        let waiting = || locked(&SCREEN).held.clone();
        let owner = Owner::dashboard();
        crate::print_line!("first {}", 1);
        crate::print_note!("second");
        assert_eq!(
            waiting(),
            [(OutputStream::Output, "first 1".to_owned()), (OutputStream::Errors, "second".to_owned())]
        );
        drop(owner);
        assert!(waiting().is_empty());
        let owner = Owner::bar(ProgressBar::hidden());
        crate::print_line!("above the bar");
        let result = owner.aside(|| {
            crate::print_line!("in its place");
            3
        });
        assert!(result == 3 && waiting().is_empty());
        drop(owner);
        assert!(locked(&SCREEN).bars.is_empty());
    }
}
