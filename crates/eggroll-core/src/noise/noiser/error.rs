//! Errors of noisers.

use crate::arithmetic::integer::MAX_SIGMA_SHIFT;

/// Settings from which no noiser can be built.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiserError {
    /// An unknown noiser, with the known names.
    #[error("no such noiser: {0}")]
    Name(String),
    /// The rank is 0.
    #[error("the rank of EGGROLL must be at least 1, not {0}")]
    Rank(usize),
    /// A group of members without a pair apart from its baselines.
    #[error("a group with two baselines must be even and have at least 4 members, not {0}")]
    BaselineGroup(usize),
    /// The sigma shift is above 24.
    #[error("the sigma shift must be at most {MAX_SIGMA_SHIFT}, not {0}")]
    SigmaShift(u32),
    /// The threshold's alpha is not in (0, 64].
    #[error("the threshold's alpha must be above 0 and at most 64, not {0}")]
    Alpha(f64),
    /// The threshold's schedule has no generations.
    #[error("the threshold's decay must be at least 1 generation, not {0}")]
    Decay(u64),
    /// A noiser of another crate that was read from a file, which only names it.
    #[error("the file only names its noiser \"{0}\", which is of another crate: expected the program to give it")]
    NotGiven(String),
    /// A noiser that is not the saved one, or has other settings.
    #[error("the saved noiser is {saved}, but the one given is {given}: expected the same, with the same settings")]
    Other {
        /// The noiser that was saved.
        saved: String,
        /// The one that was given.
        given: String,
    },
}

crate::debug_is_message!(NoiserError);
