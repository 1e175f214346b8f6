//! One single-threaded pool for every core: work inside stays on its thread, with its thread-locals. In a browser, which starts no
//! threads, work runs on the calling thread.

use eggroll_core::counters;
use eggroll_core::scope::{Enclosing, suspended};
use eggroll_core::sync::locked;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// A pool of one thread, or the calling thread.
#[derive(Debug)]
pub struct Worker(Option<ThreadPool>);

impl Worker {
    fn new(i: usize) -> Self {
        if cfg!(target_family = "wasm") {
            return Self(None);
        }
        let builder = ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| format!("eggroll-{i}"));
        Self(Some(builder.build().expect("threads can be started")))
    }
}

/// The workers, one for each thread of rayon's global pool.
pub fn pools() -> &'static [Worker] {
    static POOLS: OnceLock<Vec<Worker>> = OnceLock::new();
    POOLS.get_or_init(|| (0..rayon::current_num_threads()).map(Worker::new).collect())
}

/// Applies `f` to every item, on any pool, and returns the results in order. A panic in `f` is passed on, once all pools are done.
///
/// A thread that waits here may take jobs of other evaluations, which may run on any thread. So `f` runs outside of all scopes, but
/// inside of the evaluations that enclose this call.
pub fn map<T: Sync, R: Send>(pools: &[Worker], items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let enclosing = Enclosing::here();
    let work = || {
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = enclosing.run(|| f(item));
            locked(&results).push((index, result));
        }
    };
    suspended(|| on_all(&pools[..pools.len().min(items.len())], &work));
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// [`map`] on all pools; what `f` counts is counted on this thread.
pub fn map_counted<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let here = thread::current().id();
    let counted = |item: &T| {
        let before = counters::snapshot();
        let result = f(item);
        let is_elsewhere = thread::current().id() != here;
        (result, is_elsewhere.then(|| counters::snapshot() - before))
    };
    let results = map(pools(), items, counted).into_iter().map(|(result, counts)| {
        counts.into_iter().for_each(counters::add);
        result
    });
    results.collect()
}

/// Runs `work` once on each pool, side by side, and waits for all of them.
fn on_all(pools: &[Worker], work: &(impl Fn() + Sync)) {
    match pools.split_first() {
        Some((Worker(Some(pool)), others)) => pool.in_place_scope(|scope| {
            scope.spawn(|_| work());
            on_all(others, work);
        }),
        Some((Worker(None), others)) => {
            work();
            on_all(others, work);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn results_are_in_order_and_made_on_the_pools() {
        let items: Vec<usize> = (0..100).collect();
        for pools in [&pools()[..1], pools()] {
            let found = map(pools, &items, |item| (*item, thread::current().name().map(str::to_owned)));
            assert!(found.iter().map(|(item, _)| *item).eq(0..100));
            assert!(found.iter().all(|(_, name)| name.as_deref().is_some_and(|name| name.starts_with("eggroll-"))));
        }
        assert!(map(pools(), &[0; 0], |item| *item).is_empty());
    }

    #[test]
    fn counts_are_those_of_the_caller() {
        let (items, before) = ([(); 9], counters::snapshot());
        map_counted(&items, |()| counters::add_host_read());
        assert_eq!((counters::snapshot() - before).host_reads, 9);
        // From a pool's own thread too.
        let of_pool = pools()[0].0.as_ref().expect("a thread").install(|| {
            let before = counters::snapshot();
            map_counted(&items, |()| counters::add_host_read());
            counters::snapshot() - before
        });
        assert_eq!(of_pool.host_reads, 9);
    }

    /// Every pool has its part at the same time: each waits until all are there.
    #[test]
    fn pools_run_side_by_side() {
        let barrier = std::sync::Barrier::new(pools().len());
        let leaders = map(pools(), &vec![(); pools().len()], |()| barrier.wait().is_leader());
        assert_eq!(leaders.into_iter().filter(|is_leader| *is_leader).count(), 1);
    }

    #[test]
    fn panics_are_passed_on_and_leave_the_pools_usable() {
        let items: Vec<usize> = (0..50).collect();
        let done = AtomicUsize::new(0);
        let panicking = |item: &usize| {
            assert!(*item != 7, "seven");
            done.fetch_add(1, Relaxed);
        };
        let panic = catch_unwind(AssertUnwindSafe(|| map(pools(), &items, panicking))).expect_err("passed on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"seven"));
        // The only pool that there may be ends with the panic.
        assert!(done.load(Relaxed) >= 7);
        assert_eq!(map(pools(), &items, |item| *item), items);
    }

    /// From a thread of rayon's, and from a pool's own.
    #[test]
    fn nested_in_pools() {
        let items: Vec<usize> = (0..20).collect();
        let sums = || map(pools(), &items, |item| map(pools(), &items, |other| item * other).iter().sum::<usize>());
        let expected: Vec<usize> = items.iter().map(|item| item * 190).collect();
        assert_eq!(sums(), expected);
        assert_eq!(rayon::join(sums, sums), (expected.clone(), expected));
    }
}
