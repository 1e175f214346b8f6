//! Roles by name: the noise of each parameter of a model.

use crate::model::entry::{ParameterEntry, ParameterKind, TableError};
use crate::model::pattern;
use crate::noise::matrix::MatrixView;
use crate::noise::role::Role;

/// Gives every entry the role of the first name that [matches](pattern::matches) its path; entries without a match keep
/// their role.
pub(crate) fn assign(entries: &mut [ParameterEntry], roles: &[(String, Role)]) -> Result<(), TableError> {
    pattern::check_all_match("roles", roles.iter().map(|(name, _)| name), entries)?;
    for entry in entries {
        let Some((pattern, role)) = pattern::first_match(roles, &entry.path) else {
            continue;
        };
        if let Some(reason) = refusal(entry, *role) {
            let (path, shape) = (entry.path.clone(), entry.shape.clone());
            return Err(TableError::Role { pattern: pattern.clone(), role: *role, path, shape, reason });
        }
        entry.role = *role;
    }
    Ok(())
}

/// Freezes every entry whose path one of the names matches.
pub(crate) fn freeze(entries: &mut [ParameterEntry], frozen: &[String]) -> Result<(), TableError> {
    pattern::check_all_match("frozen", frozen, entries)?;
    for entry in entries {
        if frozen.iter().any(|name| pattern::matches(name, &entry.path)) {
            entry.role = Role::Frozen;
        }
    }
    Ok(())
}

/// The reason why a parameter cannot have a role; `None` if it can.
fn refusal(entry: &ParameterEntry, role: Role) -> Option<&'static str> {
    match (entry.kind, role, entry.shape.len()) {
        (_, Role::Frozen, _) => None,
        (_, Role::LowRank { rank: 0 }, _) => Some("the rank must be at least 1"),
        (ParameterKind::Float, Role::LowRank { .. }, _) if MatrixView::of(&entry.shape).is_none() => {
            Some("low-rank noise needs a matrix")
        }
        (ParameterKind::Float, Role::Sparse, _) if MatrixView::of(&entry.shape).is_none() => {
            Some("sparse noise needs a matrix")
        }
        (ParameterKind::Integer, Role::Sparse, _) => Some("integers have no sparse noise"),
        (ParameterKind::Integer, Role::LowRank { .. }, axes) if axes != 2 => {
            Some("low-rank noise of integers needs two axes")
        }
        (ParameterKind::Integer, Role::Dense, 2) => Some("an integer matrix has low-rank noise or none"),
        _ => None,
    }
}
