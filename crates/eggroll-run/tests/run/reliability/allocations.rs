//! The largest allocation of this thread: nothing read from a file may ask for more than the file is long.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator. A reallocation comes in as an allocation, by the trait's default.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has lost its counter.
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What `run` returns, and the bytes of its largest allocation on this thread.
pub fn largest<R>(run: impl FnOnce() -> R) -> (R, usize) {
    LARGEST.set(0);
    let result = run();
    (result, LARGEST.get())
}

#[test]
fn a_large_allocation_is_seen() {
    let (_, bytes) = largest(|| vec![1u8; 12345]);
    assert_eq!(bytes, 12345);
}
