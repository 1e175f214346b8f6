//! Reused buffers, one per thread.

use std::cell::Cell;

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
