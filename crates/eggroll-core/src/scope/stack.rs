//! Which part of a thread's stack belongs to a scope: debug builds notice jobs that a waiting worker of a rayon pool has
//! taken up on top of it.

use backtrace::Frame;
use std::cell::RefCell;
use std::collections::HashMap;

/// What the names of the functions contain in which rayon runs a job.
const JOB: &str = "rayon_core::job::Job>::execute";

/// A place on the stack of a thread that takes up other jobs while it waits.
#[derive(Debug)]
pub(super) struct StackMark(usize);

impl StackMark {
    /// The place of `local`, a variable of the function that the scope begins with, which must not be inlined. `None` outside of
    /// pools, and in pools of one thread: their jobs on top of a scope are those that the scope itself has spawned, unless the program waits
    /// for another pool there.
    pub(super) fn new(local: &u8) -> Option<Self> {
        let takes_jobs = rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1;
        takes_jobs.then(|| Self(std::ptr::from_ref(local).addr()))
    }

    /// Whether this thread runs a job that began after the mark was made. `false` where the binary has no symbols.
    pub(super) fn is_below_a_job(&self) -> bool {
        let mut found = false;
        backtrace::trace(|frame| {
            // Stacks grow downwards.
            if frame.sp().addr() > self.0 {
                return false;
            }
            found = is_job(frame);
            !found
        });
        found
    }
}

/// Whether rayon runs a job in this frame.
fn is_job(frame: &Frame) -> bool {
    thread_local! {
        /// Names are slow to find: answers by instruction.
        static KNOWN: RefCell<HashMap<usize, bool>> = RefCell::default();
    }
    let instruction = frame.ip().addr();
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&instruction).copied()) {
        return known;
    }
    let mut job = false;
    backtrace::resolve_frame(frame, |symbol| {
        job |= symbol.name().is_some_and(|name| name.to_string().contains(JOB));
    });
    KNOWN.with_borrow_mut(|known| known.insert(instruction, job));
    job
}
