//! Memory of the process.

use eggroll_examples::status;
use std::fs;

/// Forgets the peak so far, so that the next one is of one backend. Linux only, and not everywhere allowed: the peak is
/// then that of the process.
pub fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").ok();
}

/// Most memory that was resident, in bytes; `None` where the system does not tell in `/proc`.
pub fn peak_rss() -> Option<u64> {
    status::bytes("VmHWM")
}
