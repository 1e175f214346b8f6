//! Data and settings that a task refuses.

use crate::items::ItemsError;
use std::io;
use std::path::PathBuf;

/// Why a task has no data.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A file that cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file with something else in it.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<TaskError>,
    },
    /// A line that is malformed.
    #[error("line {line}: found {found}, expected {expected}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// An example that the model cannot be asked.
    #[error("line {line}: {source}")]
    Item {
        /// Its line, from 1.
        line: usize,
        /// Why not.
        source: ItemsError,
    },
    /// A file of another kind.
    #[error("found {found}, expected {expected}")]
    Kind {
        /// What is there.
        found: &'static str,
        /// What to do.
        expected: &'static str,
    },
    /// No line that is not blank.
    #[error("found no data, expected at least one line with {expected}")]
    Empty {
        /// What a line holds.
        expected: String,
    },
    /// A word that is both positive and negative.
    #[error("line {line}: the word {word:?} has the other sign on line {first}: remove one of them")]
    Contradiction {
        /// The line of the second.
        line: usize,
        /// The word.
        word: String,
        /// The line of the first.
        first: usize,
    },
    /// Too few words for the splits.
    #[error(
        "found {found} words, expected at least {expected}: {held_out} are held out, and one is needed for training"
    )]
    Words {
        /// How many there are.
        found: usize,
        /// How many are needed.
        expected: usize,
        /// How many are in the dev and the test split together.
        held_out: usize,
    },
    /// A setting.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Too few different problems.
    #[error(
        "found {found} different problems, {wanted} are wanted, and {tries} more tries gave no new one: ask for fewer, or widen \
         `numbers`, `values` or `targets`"
    )]
    Problems {
        /// How many there are.
        found: usize,
        /// How many are wanted.
        wanted: usize,
        /// Tries since the last one.
        tries: u64,
    },
}

eggroll_core::debug_is_message!(TaskError);
