//! Memory of the process.

use std::fs;

/// Forgets the peak so far, so that the next one is of one backend. Linux only, and not everywhere allowed: the peak is
/// then that of the process.
pub fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").ok();
}

/// Most memory that was resident, in bytes; `None` where the system does not tell in `/proc`.
pub fn peak_rss() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
