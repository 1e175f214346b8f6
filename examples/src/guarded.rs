//! Work that may panic: what a driver fails with is a sentence to report, not the end of the program.

use crate::Failure;
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

/// Letters of a reason: drivers may list all that they have.
const LONGEST: usize = 240;

/// Runs `work`; an error or a panic becomes the first line of its words. Panic messages are not printed meanwhile.
///
/// # Errors
///
/// That line.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, String> {
    // The first panic says why: a device's own thread may panic and leave only a closed channel to the caller.
    let first = Arc::new(Mutex::new(None::<String>));
    let hears = first.clone();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let mut first = hears.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| words(info.payload()).to_owned());
    }));
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    panic::set_hook(usual);
    let reason = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(payload) => {
            let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
            first.unwrap_or_else(|| words(payload.as_ref()).to_owned())
        }
    };
    let line = reason.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
    Err(match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    })
}

fn words(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}
