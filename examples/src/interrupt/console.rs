//! Ctrl-C where there are no signals.

use std::io;

/// The number of INT.
const INTERRUPT: i32 = 2;

/// Calls `on` for every Ctrl-C, on a separate thread.
pub fn watch(on: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || on(INTERRUPT)).map_err(io::Error::other)
}

pub fn name(_signal: i32) -> &'static str {
    "Ctrl-C"
}

pub fn exit(status: i32) -> ! {
    std::process::exit(status)
}
