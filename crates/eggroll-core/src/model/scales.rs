//! Factors of the noise scale by name.

use crate::model::entry::{ParameterEntry, ParameterKind, TableError};
use crate::model::pattern;
use crate::work::numbers::Bound;

/// The factor of every entry: from the first name that [matches](pattern::matches) its path, or 1 without a match.
pub(crate) fn assign(entries: &[ParameterEntry], scales: &[(String, f64)]) -> Result<Vec<f64>, TableError> {
    check(scales)?;
    pattern::check_all_match("scales", scales.iter().map(|(name, _)| name), entries)?;
    let factor = |entry: &ParameterEntry| match pattern::first_match(scales, &entry.path) {
        None => Ok(1.0),
        Some((pattern, scale)) if entry.is_trained_as(ParameterKind::Integer) => {
            let (pattern, path) = (pattern.clone(), entry.path.clone());
            Err(TableError::IntegerScale { pattern, scale: *scale, path })
        }
        Some((_, scale)) => Ok(*scale),
    };
    entries.iter().map(factor).collect()
}

/// Refuses a factor that is not above 0 or does not fit f32.
pub(crate) fn check(scales: &[(String, f64)]) -> Result<(), TableError> {
    match scales.iter().find(|(_, scale)| !Bound::Positive.fits(*scale)) {
        None => Ok(()),
        Some((pattern, scale)) => Err(TableError::Scale { pattern: pattern.clone(), scale: *scale }),
    }
}
