//! The folder of a run.

use eggroll::run::{Error, RunError, RunFolder, print_line};
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
///
/// # Errors
///
/// [`RunError::Settings`] if they cannot be written: as nothing at all they would equal any others.
pub fn fixed(settings: &impl Serialize, free: &[&str]) -> Result<Value, Error> {
    let mut settings = serde_json::to_value(settings).map_err(|error| RunError::Settings(error.to_string()))?;
    if let Some(fields) = settings.as_object_mut() {
        free.iter().for_each(|name| drop(fields.remove(*name)));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::fixed;
    use std::collections::BTreeMap;

    #[test]
    fn settings_that_cannot_be_written_are_an_error() {
        let error = fixed(&BTreeMap::from([((1, 2), 3)]), &[]).expect_err("JSON has no such keys").to_string();
        assert!(error.contains("key must be a string"), "{error}");
        let fixed = fixed(&BTreeMap::from([("a", 1), ("b", 2)]), &["b"]).expect("writes");
        assert_eq!(fixed, serde_json::json!({ "a": 1 }));
    }
}
