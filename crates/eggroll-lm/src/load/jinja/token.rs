//! Tokens of a template, and Python's white space.

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Data(String),
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name(String),
    Text(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

/// Python's white space.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}
