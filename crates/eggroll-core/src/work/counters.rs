//! Counts of work that should stay rare: asserted in tests, cheap enough to stay on.
//!
//! Counts are kept by thread: read them on the thread that trains.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of this thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tensors read to the host by eggroll.
    pub host_reads: u64,
    /// Perturbed operations and estimates launched.
    pub launches: u64,
    /// Bytes of noise written to tensors; 0 for kernels that draw on the fly.
    pub noise_bytes: u64,
}

impl std::ops::Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            host_reads: self.host_reads - before.host_reads,
            launches: self.launches - before.launches,
            noise_bytes: self.noise_bytes - before.noise_bytes,
        }
    }
}

thread_local! {
    static COUNTERS: Cell<Counters> = const { Cell::new(Counters { host_reads: 0, launches: 0, noise_bytes: 0 }) };
}

/// The counts of this thread.
///
/// # Example
///
/// ```
/// use eggroll_core::counters;
///
/// let before = counters::snapshot();
/// // … work …
/// assert_eq!((counters::snapshot() - before).host_reads, 0);
/// ```
pub fn snapshot() -> Counters {
    COUNTERS.get()
}

/// Adds the counts of another thread that worked for this one.
pub fn add(counts: Counters) {
    update(|counters| {
        counters.host_reads += counts.host_reads;
        counters.launches += counts.launches;
        counters.noise_bytes += counts.noise_bytes;
    });
}

fn update(f: impl FnOnce(&mut Counters)) {
    let mut counters = COUNTERS.get();
    f(&mut counters);
    COUNTERS.set(counters);
}

/// Counts one tensor read to the host.
pub fn add_host_read() {
    update(|counters| counters.host_reads += 1);
}

/// eggroll's kernels that were launched on devices: the count of the whole process, because a backend may run
/// operations later and elsewhere.
static KERNELS: AtomicU64 = AtomicU64::new(0);

/// Kernels of eggroll that this process has launched on devices so far.
pub fn kernels() -> u64 {
    KERNELS.load(Ordering::Relaxed)
}

thread_local! {
    static KERNELS_OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Kernels of [`kernels`] that this thread has launched; under Burn's Fusion, a thread of the device launches them.
pub fn thread_kernels() -> u64 {
    KERNELS_OF_THREAD.get()
}

#[cfg(feature = "cube")]
pub(crate) fn add_kernel() {
    KERNELS.fetch_add(1, Ordering::Relaxed);
    KERNELS_OF_THREAD.set(KERNELS_OF_THREAD.get() + 1);
}

pub(crate) fn add_launch() {
    update(|counters| counters.launches += 1);
}

pub(crate) fn add_noise_bytes(bytes: usize) {
    update(|counters| counters.noise_bytes += bytes as u64);
}
