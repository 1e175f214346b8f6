//! Reused buffers, one per thread.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static BUFFER: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Runs `f` on a buffer of `len` floats with unspecified content.
pub(crate) fn with_scratch<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    BUFFER.with(|cell| {
        let mut buffer = cell.take();
        if buffer.len() < len {
            buffer.resize(len, 0.0);
        }
        let result = f(&mut buffer[..len]);
        cell.set(buffer);
        result
    })
}

/// Runs `f` on a thread's own buffers, which keep their memory from call to call.
pub(crate) fn reuse<T: Default, R>(buffers: &'static LocalKey<Cell<T>>, f: impl FnOnce(&mut T) -> R) -> R {
    buffers.with(|cell| {
        let mut taken = cell.take();
        let result = f(&mut taken);
        cell.set(taken);
        result
    })
}
