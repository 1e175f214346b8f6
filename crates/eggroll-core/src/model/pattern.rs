//! Names of parameters in settings: a path, the path of a module for all parameters in it, or a pattern over paths.

use crate::model::entry::{ParameterEntry, TableError};
use crate::work::messages::nearest;

/// Refuses a name that matches no parameter.
pub(crate) fn check_all_match<'a>(
    setting: &'static str,
    names: impl IntoIterator<Item = &'a String>,
    entries: &[ParameterEntry],
) -> Result<(), TableError> {
    match names.into_iter().find(|name| !entries.iter().any(|entry| matches(name, &entry.path))) {
        None => Ok(()),
        Some(name) => {
            let known = entries.iter().map(|entry| entry.path.clone()).collect();
            Err(TableError::Unmatched { setting, name: name.clone(), known: nearest(name, known) })
        }
    }
}

/// The first name that matches a path, with its value.
pub(crate) fn first_match<'a, T>(names: &'a [(String, T)], path: &str) -> Option<&'a (String, T)> {
    names.iter().find(|(name, _)| matches(name, path))
}

/// Whether `name` matches the parameter at `path`. With stars or question marks it is a pattern for the whole path. Otherwise it is the
/// path of the parameter or of a module that contains it.
pub(crate) fn matches(name: &str, path: &str) -> bool {
    match name.contains(['*', '?']) {
        true => fits(name, path),
        false => path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
    }
}

/// Whether a pattern fits all of `path`: `*` is any run of characters, also none, `?` exactly one.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) = (pattern.chars().collect(), path.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last star, and the end of its run so far: if the remaining pattern does not fit, the run takes one more
    // character.
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
            ("encoder", "encoder.weight"),
            ("encoder.layers", "encoder.layers.0.weight"),
            ("*a*b", "xaxxab"),
            ("a*b*c", "abbcbc"),
            ("**", "x"),
            ("?é", "né"),
            ("*ab", "aab"),
        ];
        let no = [
            ("", "a"),
            ("weight", "a.weight"),
            ("?", ""),
            ("encoder.*", "encoder"),
            ("*.bias", "bias"),
            ("a?c", "ac"),
            ("*.?.weight", "layers.12.weight"),
            ("a*b", "abc"),
            ("encod", "encoder.weight"),
            ("encoder.", "encoder.weight"),
            ("layers.?", "layers.7.weight"),
            ("Bias", "bias"),
        ];
        assert_eq!(yes.iter().find(|(pattern, path)| !matches(pattern, path)), None);
        assert_eq!(no.iter().find(|(pattern, path)| matches(pattern, path)), None);
    }
}
