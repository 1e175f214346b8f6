//! Wall time, and the processor time of this process.

use std::ops::{AddAssign, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Wall time and processor time of all threads: until now, or of a phase.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub wall: Duration,
    /// Always 0 outside Unix.
    pub cpu: Duration,
}

impl Times {
    pub fn now() -> Self {
        Self { wall: wall(), cpu: cpu() }
    }
}

impl Sub for Times {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { wall: self.wall.saturating_sub(before.wall), cpu: self.cpu.saturating_sub(before.cpu) }
    }
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

/// Since the first trace of the process began.
pub(super) fn wall() -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}

#[cfg(unix)]
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(not(unix))]
fn cpu() -> Duration {
    Duration::ZERO
}
