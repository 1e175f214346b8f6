//! Signals of Unix.

use super::ignored::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::{io, thread};

/// Calls `on` for every signal that was not ignored, on a separate thread.
pub fn watch(on: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let all = [(SIGINT, "INT"), (SIGTERM, "TERM"), (SIGHUP, "HUP")];
    let heeded = all.into_iter().filter(|(number, name)| !is_ignored(*number, name));
    let mut signals = Signals::new(heeded.map(|(number, _)| number))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || signals.forever().for_each(on))?;
    Ok(())
}

pub fn name(signal: i32) -> &'static str {
    low_level::signal_name(signal).unwrap_or("a signal")
}

/// Ends the process without what is registered to be done at its end: that might wait for what has not ended.
pub fn exit(status: i32) -> ! {
    low_level::exit(status)
}
