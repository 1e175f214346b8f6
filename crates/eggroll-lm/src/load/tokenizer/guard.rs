//! Panics of crate `tokenizers` as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tokenizers::tokenizer::Result;

/// Runs code of crate `tokenizers`. A panic, from an unforeseen combination of steps and text, becomes an error.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("crate `tokenizers` panics: {}", text.unwrap_or("without a message")))
        }
    }
}
