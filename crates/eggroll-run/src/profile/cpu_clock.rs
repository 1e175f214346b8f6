//! The processor time of this process.

use std::time::Duration;

/// Processor time of all threads of this process; always 0 outside Unix.
#[cfg(unix)]
pub(super) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Processor time of all threads of this process; always 0 outside Unix.
#[cfg(not(unix))]
pub(super) fn now() -> Duration {
    Duration::ZERO
}
