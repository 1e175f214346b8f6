//! One single-threaded pool for every core: work inside stays on its core, thread-locals included.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The pools, as many as rayon's global pool has threads.
pub fn pools() -> &'static [ThreadPool] {
    static POOLS: OnceLock<Vec<ThreadPool>> = OnceLock::new();
    POOLS.get_or_init(|| {
        let pool = |i| {
            let builder = ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| format!("eggroll-{i}"));
            builder.build().expect("threads can be started")
        };
        (0..rayon::current_num_threads()).map(pool).collect()
    })
}

/// Applies `f` to every item, on any pool, and returns the results in order. A panic in `f` is passed on.
pub fn map<T: Sync, R: Send>(pools: &[ThreadPool], items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            match items.get(index) {
                Some(item) => done.push((index, f(item))),
                None => return done,
            }
        }
    };
    let mut results = std::thread::scope(|scope| {
        let threads: Vec<_> = pools.iter().take(items.len()).map(|pool| scope.spawn(|| pool.install(work))).collect();
        let mut results = Vec::with_capacity(items.len());
        for thread in threads {
            match thread.join() {
                Ok(done) => results.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
