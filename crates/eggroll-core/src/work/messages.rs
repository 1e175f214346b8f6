//! Shared parts of all error messages.

use std::fmt;

/// `Debug` of errors is their message: a `main` that returns an error prints its `Debug`, and so does `unwrap`.
///
/// # Example
///
/// ```
/// use thiserror::Error;
///
/// #[derive(Error)]
/// #[error("the rank must be at least 1, not {0}")]
/// struct RankError(usize);
///
/// eggroll_core::debug_is_message!(RankError);
/// assert_eq!(format!("{:?}", RankError(0)), "the rank must be at least 1, not 0");
/// ```
#[macro_export]
macro_rules! debug_is_message {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// A list in a message: its first ten, and how many are left out.
///
/// # Example
///
/// ```
/// use eggroll_core::messages::listed;
///
/// assert_eq!(listed(&["a", "b"]), r#"["a", "b"]"#);
/// assert_eq!(listed(&[7; 12]), "[7, 7, 7, 7, 7, 7, 7, 7, 7, 7] and 2 more");
/// ```
pub fn listed<T: fmt::Debug>(list: &[T]) -> String {
    const SHOWN: usize = 10;
    match list.get(SHOWN) {
        None => format!("{list:?}"),
        Some(_) => format!("{:?} and {} more", &list[..SHOWN], list.len() - SHOWN),
    }
}

/// The number, or 0 if it rounds to 0 at `decimals`: tables have no −0.00.
///
/// # Example
///
/// ```
/// use eggroll_core::messages::shown;
///
/// assert_eq!(format!("{:.2}", -0.001), "-0.00");
/// assert_eq!(format!("{:.2} {:.2}", shown(-0.001, 2), shown(-0.005_1, 2)), "0.00 -0.01");
/// ```
pub fn shown(number: f64, decimals: usize) -> f64 {
    let is_zero =
        number.is_sign_negative() && format!("{number:.decimals$}").bytes().all(|byte| b"-0.".contains(&byte));
    if is_zero { 0.0 } else { number }
}

/// `names`, sorted by the distance from `name`: single letters to insert, delete or replace (Levenshtein).
pub(crate) fn nearest(name: &str, mut names: Vec<String>) -> Vec<String> {
    names.sort_by_cached_key(|other| distance(name, other));
    names
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // Distances between the part of `a` read so far and every prefix of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        assert_eq!(
            [("", "abc"), ("kitten", "sitting"), ("né", "ne"), ("a", "a")].map(|(a, b)| distance(a, b)),
            [3, 3, 1, 0]
        );
        let names = ["encoder.weight", "head.bias", "head.weight"].map(str::to_owned).to_vec();
        assert_eq!(nearest("haed.weight", names)[0], "head.weight");
    }
}
