//! Patterns over the paths of parameters: the first that matches decides.

use crate::entry::{ParameterEntry, TableError};

/// Refuses a pattern that matches no parameter.
pub(crate) fn check_all_match<T>(patterns: &[(String, T)], entries: &[ParameterEntry]) -> Result<(), TableError> {
    match patterns.iter().find(|(pattern, _)| !entries.iter().any(|entry| matches(pattern, &entry.path))) {
        None => Ok(()),
        Some((pattern, _)) => {
            let known = entries.iter().map(|entry| entry.path.clone()).collect();
            Err(TableError::UnmatchedPattern { pattern: pattern.clone(), known })
        }
    }
}

/// The first pattern that matches a path, with what it stands for.
pub(crate) fn first_match<'a, T>(patterns: &'a [(String, T)], path: &str) -> Option<&'a (String, T)> {
    patterns.iter().find(|(pattern, _)| matches(pattern, path))
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
