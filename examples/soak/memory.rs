//! Resident memory over a run.

use std::fs;

/// Looks at the memory, by generation.
#[derive(Default)]
pub struct Looks(Vec<u64>);

impl Looks {
    /// Looks now. Where the system does not tell in `/proc`, there is nothing to see.
    pub fn look(&mut self) {
        self.0.extend(resident());
    }

    /// Most bytes in the first half of the looks, less the first tenth of all, and in the second half; `None` with too few.
    pub fn halves(&self) -> Option<[u64; 2]> {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        let warm = first.get(self.0.len().div_ceil(10)..)?;
        Some([*warm.iter().max()?, *second.iter().max()?])
    }
}

/// Bytes of the process in memory: what `/proc/self/statm` says in pages, in units that do not depend on the machine.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
