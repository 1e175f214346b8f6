//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a thread has panicked while it held it.
///
/// For values that change in one step: no panic leaves them half changed, so poison has nothing to warn of, and a program that catches
/// the panic can continue.
///
/// # Example
///
/// ```
/// use eggroll_core::sync::locked;
/// use std::sync::Mutex;
///
/// let mutex = Mutex::new(3);
/// let panicked = std::thread::scope(|scope| {
///     let holder = scope.spawn(|| {
///         let _guard = mutex.lock();
///         panic!("while it is held");
///     });
///     holder.join()
/// });
/// assert!(panicked.is_err() && mutex.is_poisoned());
/// assert_eq!(*locked(&mutex), 3);
/// ```
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
