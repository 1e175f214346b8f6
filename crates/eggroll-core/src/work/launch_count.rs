//! Counts of kernels on devices, Burn's included.

#[cfg(feature = "cube")]
use cubecl::logging::{LaunchObservation, LaunchObserver};
#[cfg(feature = "cube")]
use std::sync::Arc;
#[cfg(feature = "cube")]
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts all kernels that this process launches on devices through CubeCL during its lifetime, on any thread. Kernels of Burn, of its Fusion and of
/// eggroll count. CPU backends launch none.
///
/// Burn queues work, and Fusion launches it as late as it can: count after a read or [`Device::sync`](burn::tensor::Device::sync). Kernels that
/// autotune tries out count too: run the work once before you count it. CubeCL has room for one observer: of two counts at the same time only
/// the second counts, and they must be dropped in reverse order.
///
/// # Example
///
/// ```
/// use eggroll_core::LaunchCount;
///
/// let count = LaunchCount::start();
/// // … work on a device, and a read …
/// println!("{} kernels", count.kernels());
/// ```
#[derive(Debug)]
pub struct LaunchCount {
    #[cfg(feature = "cube")]
    counter: Arc<Counter>,
    #[cfg(feature = "cube")]
    _observation: LaunchObservation,
}

impl LaunchCount {
    /// Begins to count.
    #[cfg(feature = "cube")]
    pub fn start() -> Self {
        let counter = Arc::new(Counter::default());
        Self { _observation: LaunchObservation::new(counter.clone()), counter }
    }

    /// Begins to count. No device is compiled in: the count stays 0.
    #[cfg(not(feature = "cube"))]
    pub fn start() -> Self {
        Self {}
    }

    /// Kernels so far.
    pub fn kernels(&self) -> u64 {
        #[cfg(feature = "cube")]
        return self.counter.0.load(Ordering::Relaxed);
        #[cfg(not(feature = "cube"))]
        0
    }
}

#[cfg(feature = "cube")]
#[derive(Debug, Default)]
struct Counter(AtomicU64);

#[cfg(feature = "cube")]
impl LaunchObserver for Counter {
    fn launched(&self, _: &'static str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
