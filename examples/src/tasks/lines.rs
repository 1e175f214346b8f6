//! Files of lines.

use crate::Failure;
use std::fs;
use std::path::Path;

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

/// What `parse` makes of a file of UTF-8; errors name the file.
pub(super) fn read<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, Failure>) -> Result<T, Failure> {
    let read = || {
        let bytes = fs::read(path)?;
        parse(std::str::from_utf8(&bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            format!("line {line}: found the byte 0x{:02X}, expected text in UTF-8, not compressed", bytes[valid.len()])
        })?)
    };
    read().map_err(|error: Failure| format!("{}: {error}", path.display()).into())
}

/// The lines that are not blank, with their numbers from 1, without a byte order mark.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// The start of a line.
pub(super) fn shown(line: &str) -> String {
    let start: String = line.chars().take(SHOWN).collect();
    if start.len() < line.len() { format!("{start:?}…") } else { format!("{start:?}") }
}
