//! Texts and how they are read.

use std::path::PathBuf;

/// Why a text cannot be used as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A text that is too short.
    #[error("{path}: a text of {len} bytes cannot be used: {reason}")]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes of it, or of the part in question.
        len: usize,
        /// Why it cannot be used.
        reason: String,
    },
    /// A share for validation that leaves no data for validation or for training.
    #[error("the share for validation must be between 0 and 1, not {0}")]
    ValidationShare(f64),
    /// Streams over a text that read nothing.
    #[error(
        "streams over a text need at least one sequence of at least one byte, not {streams} sequences of {steps} bytes"
    )]
    Streams {
        /// Streams side by side.
        streams: usize,
        /// Bytes of a generation.
        steps: usize,
    },
    /// A temperature out of range.
    #[error("a temperature must be at least 0 and finite, not {0}")]
    Temperature(f64),
    /// A min-p out of range.
    #[error("min-p must be from 0 to 1, not {0}")]
    MinP(f64),
    /// A penalty that is not finite.
    #[error("a presence penalty must be finite, not {0}")]
    PresencePenalty(f64),
}

eggroll_core::debug_is_message!(TextError);
