//! What Linux says about this process.

use std::fs;

/// Clock ticks per second in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// A field of `/proc/self/status` in bytes, `VmRSS` for one; `None` where there is none.
pub fn bytes(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// CPU seconds of this process, in steps of 0.01; 0 without `/proc`.
pub fn cpu_seconds() -> f64 {
    let read = || -> Option<f64> {
        let line = fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    };
    read().unwrap_or(0.0)
}
