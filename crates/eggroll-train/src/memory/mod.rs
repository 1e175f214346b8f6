//! Memory that a strategy would take, estimated before anything is allocated.

#[cfg(target_os = "linux")]
mod linux;

use crate::config::EvolutionStrategyConfig;
use crate::error::MemoryError;
use eggroll_core::{NoiseSourceConfig, ParameterTable};

/// Largest expected number of rows of a member, before anything is measured.
const USUAL_ROWS: u64 = 1024;

/// Bytes that may be used: as configured, else by where the model is. In host memory, Linux says what memory, control
/// groups and the limit of the address space leave. Otherwise it is the memory of the device, if known.
pub(crate) fn limit(config: &EvolutionStrategyConfig, table: &ParameterTable) -> Option<u64> {
    config.memory_limit.or_else(|| if table.is_on_host() { left() } else { table.device_memory() })
}

#[cfg(target_os = "linux")]
use linux::left;

#[cfg(not(target_os = "linux"))]
fn left() -> Option<u64> {
    None
}

/// Refuses noise and a configured chunk that do not fit, before anything is evaluated.
pub(crate) fn check(config: &EvolutionStrategyConfig, table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    check_pair_noise(table, limit)?;
    check_held_noise(config, table, limit)?;
    let least = Chunk { member_bytes: table.least_output_bytes(), side_by_side: 1, limit };
    least.check(config.chunk_size.unwrap_or(2).min(config.population_size))
}

/// One pair's noise of one parameter is the least that any operation holds.
fn check_pair_noise(table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    let bytes = (0..table.entries().len()).map(|position| (table.noise_bytes(position), position));
    match bytes.max() {
        Some((needed, position)) if needed > limit => {
            let what = format!("one pair's noise of \"{}\"", table.entries()[position].path);
            Err(MemoryError::Noise { what, needed, limit, advice: "a lower rank takes less".to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_held_noise(config: &EvolutionStrategyConfig, table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    let (source, pairs) = (config.noise_source, (config.population_size / 2) as u32);
    let held = |pairs| source.materialized_bytes(table, pairs);
    let needed = held(pairs);
    if needed <= limit {
        return Ok(());
    }
    let (fixed, each) = (held(0), held(1) - held(0));
    let advice = match limit.checked_sub(fixed).map(|left| left / each.max(1)) {
        None => format!("the table alone takes {fixed}"),
        Some(0) => "not even the noise of one pair fits".to_owned(),
        Some(pairs) => format!("a population of {} fits", pairs.saturating_mul(2)),
    };
    let advice = match source {
        NoiseSourceConfig::Cached => format!("{advice}; on the fly, only integer parameters hold noise"),
        _ => advice,
    };
    Err(MemoryError::Noise { what: format!("the noise that {pairs} pairs hold"), needed, limit, advice })
}

/// The memory of chunks of members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Bytes that the perturbed layers return for a member: 0 if not known.
    pub member_bytes: u64,
    /// Chunks that are evaluated at the same time.
    pub side_by_side: usize,
    /// Bytes that may be used.
    pub limit: u64,
}

impl Chunk {
    /// Refuses a chunk that does not fit, with the largest one that does.
    pub fn check(self, members: usize) -> Result<(), MemoryError> {
        let Self { member_bytes, side_by_side, limit } = self;
        let needed = self.bytes(members);
        if needed <= limit {
            return Ok(());
        }
        let fits = limit / member_bytes.saturating_mul(side_by_side as u64).max(1);
        let fits = usize::try_from(fits - fits % 2).unwrap_or(usize::MAX);
        Err(MemoryError::Chunk { members, side_by_side, needed, limit, fits })
    }

    /// Whether a chunk may not fit, from a lower bound for one row of a member.
    pub fn is_risky(self, members: usize) -> bool {
        self.bytes(members).saturating_mul(USUAL_ROWS) > self.limit
    }

    fn bytes(self, members: usize) -> u64 {
        self.member_bytes.saturating_mul(members as u64).saturating_mul(self.side_by_side as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_fit() {
        let chunk = Chunk { member_bytes: 100, side_by_side: 2, limit: 1000 };
        assert!(chunk.check(4).is_ok());
        let refused = |chunk: Chunk, members| chunk.check(members).expect_err("refused").to_string();
        let message = "a chunk of 6 members takes about 1200 bytes (2 chunks at once), more than the 1000 that may be \
                       used: a chunk of 4 members fits";
        assert_eq!(refused(chunk, 6), message);
        assert!(refused(Chunk { limit: 399, ..chunk }, 2).ends_with("not even a chunk of 2 members fits"));
        assert!(refused(Chunk { member_bytes: u64::MAX, ..chunk }, usize::MAX).contains(&u64::MAX.to_string()));
        assert!(Chunk { member_bytes: 0, ..chunk }.check(usize::MAX).is_ok(), "nothing is known yet");
    }
}
