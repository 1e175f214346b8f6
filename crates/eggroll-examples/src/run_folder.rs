//! The folder of a new run.

use eggroll_run::{Error, RunFolder};
use serde::Serialize;

/// Begins a run in a folder, and says where an earlier one is now.
///
/// # Errors
///
/// As [`RunFolder::begin`].
pub fn begin(folder: &RunFolder, settings: &impl Serialize) -> Result<(), Error> {
    if let Some(aside) = folder.begin(settings)? {
        println!("the earlier run is now in {}", aside.display());
    }
    Ok(())
}
