//! Memory that a strategy would take, estimated before anything is allocated.

use crate::config::EvolutionStrategyConfig;
use crate::error::MemoryError;
use eggroll_core::{NoiseSourceConfig, ParameterTable};

/// Rows that a member is expected to have at most, where nothing is known yet.
const USUAL_ROWS: u64 = 1024;

/// Bytes that may be used: what is configured, or for models in host memory what Linux says is left; elsewhere nothing is known.
pub(crate) fn limit(config: &EvolutionStrategyConfig, table: &ParameterTable) -> Option<u64> {
    config.memory_limit.or_else(|| table.is_on_host().then(left).flatten())
}

/// What a control group may take, and what its processes hold.
struct Group {
    limit: u64,
    held: u64,
}

/// The least of what the system has left and what every control group around this process has left. Cached files count towards what a
/// group uses, but not here: they go when memory is needed.
fn least(available: Option<u64>, groups: impl IntoIterator<Item = Group>) -> Option<u64> {
    let of_groups = groups.into_iter().map(|group| group.limit.saturating_sub(group.held));
    available.into_iter().chain(of_groups).min()
}

#[cfg(target_os = "linux")]
fn left() -> Option<u64> {
    use sysinfo::{CGroupLimits, MemoryRefreshKind, Process, ProcessRefreshKind, ProcessesToUpdate, System};

    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let available = Some(system.available_memory()).filter(|bytes| *bytes > 0);
    let own = sysinfo::get_current_pid().ok();
    let nothing_else = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(own.as_slice()), false, nothing_else);
    // In a container its root is what limits; outside, as in a job of a cluster, the group of the process.
    let of_process = own.and_then(|own| system.process(own)).and_then(Process::cgroup_limits);
    let group = |CGroupLimits { total_memory, rss, .. }| Group { limit: total_memory, held: rss };
    least(available, [system.cgroup_limits(), of_process].into_iter().flatten().map(group))
}

#[cfg(not(target_os = "linux"))]
fn left() -> Option<u64> {
    least(None, [])
}

/// Refuses noise, and a configured chunk, that can be seen not to fit before anything is evaluated.
pub(crate) fn check(config: &EvolutionStrategyConfig, table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    check_pair_noise(table, limit)?;
    check_held_noise(config, table, limit)?;
    let least = Chunk { member_bytes: table.least_output_bytes() as u64, side_by_side: 1, limit };
    least.check(config.chunk.unwrap_or(2).min(config.population))
}

/// One pair's noise of one parameter is the least that any operation holds.
fn check_pair_noise(table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    let bytes = (0..table.entries().len()).map(|position| (table.noise_bytes(position) as u64, position));
    match bytes.max() {
        Some((needed, position)) if needed > limit => {
            let what = format!("one pair's noise of \"{}\"", table.entries()[position].path);
            Err(MemoryError::Noise { what, needed, limit, advice: "a lower rank takes less".to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_held_noise(config: &EvolutionStrategyConfig, table: &ParameterTable, limit: u64) -> Result<(), MemoryError> {
    let (source, pairs) = (config.noise_source, (config.population / 2) as u32);
    let held = |pairs| source.held_bytes(table, pairs);
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

/// What chunks of members take.
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
        Err(MemoryError::Chunk { members, side_by_side, needed, limit, fits: (fits - fits % 2) as usize })
    }

    /// Whether a chunk may not fit, where all that is known is what one row of a member takes at least.
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
    fn the_least_of_system_and_groups_is_left() {
        let group = |limit, held| Group { limit, held };
        assert_eq!(least(Some(100), []), Some(100));
        assert_eq!(least(Some(100), [group(60, 10), group(80, 40)]), Some(40));
        assert_eq!(least(Some(100), [group(500, 10)]), Some(100), "a group of more than there is");
        assert_eq!(least(Some(100), [group(60, 61)]), Some(0), "over its limit");
        assert_eq!(least(None, [group(60, 10)]), Some(50));
        assert_eq!(least(None, []), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_says_what_is_left() {
        let meminfo = std::fs::read_to_string("/proc/meminfo").expect("Linux has it");
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("a total");
        let total: u64 = total.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!((1 << 20..total * 1024).contains(&left().expect("known")));
    }

    #[test]
    fn chunks_that_fit() {
        let chunk = Chunk { member_bytes: 100, side_by_side: 2, limit: 1000 };
        assert!(chunk.check(4).is_ok());
        let refused = |chunk: Chunk, members| chunk.check(members).expect_err("refused").to_string();
        let message = "a chunk of 6 members takes about 1200 bytes, 2 of them side by side, more than the 1000 that may be \
                       used: a chunk of 4 members fits";
        assert_eq!(refused(chunk, 6), message);
        assert!(refused(Chunk { limit: 399, ..chunk }, 2).ends_with("not even a chunk of 2 members fits"));
        assert!(refused(Chunk { member_bytes: u64::MAX, ..chunk }, usize::MAX).contains(&u64::MAX.to_string()));
        assert!(Chunk { member_bytes: 0, ..chunk }.check(usize::MAX).is_ok(), "nothing is known yet");
    }
}
