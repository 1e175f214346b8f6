//! Resident memory over a run.

use eggroll_examples::status;

/// Looks at the memory, by generation.
#[derive(Default)]
pub struct Looks(Vec<u64>);

impl Looks {
    /// Looks now, at what `/proc/self/statm` counts in pages too. Where the system does not tell, there is nothing to see.
    pub fn look(&mut self) {
        self.0.extend(status::bytes("VmRSS"));
    }

    /// Most bytes in the first half of the looks, less the first tenth of all, and in the second half; `None` with too few.
    pub fn halves(&self) -> Option<[u64; 2]> {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        let warm = first.get(self.0.len().div_ceil(10)..)?;
        Some([*warm.iter().max()?, *second.iter().max()?])
    }
}
