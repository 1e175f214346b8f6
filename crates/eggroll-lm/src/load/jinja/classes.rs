//! Classes of characters, by Unicode's tables.

use fancy_regex::Regex;
use std::sync::LazyLock;

#[derive(Clone, Copy)]
pub(super) enum Class {
    Letters,
    LettersAndNumbers,
    Decimals,
    Numbers,
    Other,
    Words,
}

/// Whether a text is characters of a class only, and one at least.
pub(super) fn matches(class: Class, text: &str) -> bool {
    static CLASSES: LazyLock<Vec<Option<Regex>>> = LazyLock::new(|| {
        let classes = [r"\p{L}", r"\p{L}\p{N}", r"\p{Nd}", r"\p{N}", r"\p{C}\p{Zl}\p{Zp}\p{Zs}", r"\p{L}\p{N}_"];
        classes.iter().map(|class| Regex::new(&format!(r"\A[{class}]+\z")).ok()).collect()
    });
    CLASSES[class as usize].as_ref().is_some_and(|regex| regex.is_match(text).unwrap_or(false))
}
