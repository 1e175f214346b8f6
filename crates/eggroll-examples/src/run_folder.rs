//! The folder of a run.

use eggroll_run::print_line;
use eggroll_run::{Error, RunFolder};
use serde::Serialize;
use serde_json::Value;

/// Begins a run in a folder, and says where an earlier one is now.
///
/// # Errors
///
/// As [`RunFolder::begin`].
pub fn begin(folder: &RunFolder, settings: &impl Serialize) -> Result<(), Error> {
    if let Some(aside) = folder.begin(settings)? {
        print_line!("the earlier run is now in {}", aside.display());
    }
    Ok(())
}

/// What of a program's settings must not change while a run is continued: all but the fields that are `free` to.
pub fn fixed(settings: &impl Serialize, free: &[&str]) -> Value {
    let mut settings = serde_json::to_value(settings).unwrap_or_default();
    if let Some(fields) = settings.as_object_mut() {
        free.iter().for_each(|name| drop(fields.remove(*name)));
    }
    settings
}
