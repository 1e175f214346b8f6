//! Roles by pattern: which parameters of a model get which noise.

use crate::entry::{ParameterEntry, ParameterKind, TableError};
use crate::matrix::MatrixView;
use crate::role::Role;

/// Gives every entry the role of the first pattern that matches its path; the others keep theirs.
pub(crate) fn assign(entries: &mut [ParameterEntry], roles: &[(String, Role)]) -> Result<(), TableError> {
    for (pattern, _) in roles {
        if !entries.iter().any(|entry| matches(pattern, &entry.path)) {
            let known = entries.iter().map(|entry| entry.path.clone()).collect();
            return Err(TableError::UnmatchedPattern { pattern: pattern.clone(), known });
        }
    }
    for entry in entries {
        let Some((pattern, role)) = roles.iter().find(|(pattern, _)| matches(pattern, &entry.path)) else {
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

/// Why a parameter cannot have a role, if it cannot.
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

/// Whether all of `path` matches: `*` is any run of characters, also none, `?` exactly one.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) = (pattern.chars().collect(), path.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last star, and where its run ends so far: where the rest does not fit, the run takes one character more.
    let mut star = None;
    while read < path.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(c) if *c == '?' || *c == path[read] => (at, read) = (at + 1, read + 1),
            _ => match star {
                None => return false,
                Some((place, end)) => {
                    star = Some((place, end + 1));
                    (at, read) = (place + 1, end + 1);
                }
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let yes = [
            ("*", ""),
            ("*", "a.b"),
            ("a.b", "a.b"),
            ("encoder.*", "encoder.layers.0.weight"),
            ("*.bias", "a.b.bias"),
            ("*.?.weight", "layers.7.weight"),
            ("*a*b", "xaxxab"),
            ("a*b*c", "abbcbc"),
            ("**", "x"),
            ("?é", "né"),
            ("*ab", "aab"),
        ];
        let no = [
            ("", "a"),
            ("?", ""),
            ("encoder.*", "encoder"),
            ("*.bias", "bias"),
            ("a?c", "ac"),
            ("*.?.weight", "layers.12.weight"),
            ("a*b", "abc"),
            ("encoder", "encoder.weight"),
            ("Bias", "bias"),
        ];
        assert_eq!(yes.iter().find(|(pattern, path)| !matches(pattern, path)), None);
        assert_eq!(no.iter().find(|(pattern, path)| matches(pattern, path)), None);
    }
}
