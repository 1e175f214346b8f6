//! Errors of decisions, with the values in them.

use std::error::Error;

/// Errors of [`ExpectedValues`](super::ExpectedValues).
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ExpectedValuesError {
    /// A number of worlds that cannot be sampled.
    #[error("expected values: worlds must be 1 to {most}, not {0}", most = u32::MAX)]
    Worlds(usize),
    /// More positions than a step may have.
    #[error(
        "expected values: {games} games of {worlds} worlds each give {positions} positions to value, but a step has \
         at most {most}. Decide fewer games at a time"
    )]
    TooMany {
        /// Games of the step.
        games: usize,
        /// Worlds of each.
        worlds: usize,
        /// Their positions, as far as they were counted.
        positions: usize,
        /// The bound.
        most: usize,
    },
    /// A temperature of no soft policy.
    #[error(
        "expected values: temperature must be a positive number that f32 can hold, not {0}: use None for equal weights"
    )]
    Temperature(f64),
    /// Worlds of a game cannot be sampled.
    #[error("expected values: the worlds of game {game} of the batch cannot be sampled: {source}")]
    Sampler {
        /// Its place in the batch.
        game: usize,
        /// What the sampler found.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A sampler that pushed fewer worlds.
    #[error("expected values: the sampler gave {found} worlds of game {game} of the batch, where {expected} are due")]
    TooFewWorlds {
        /// Its place in the batch.
        game: usize,
        /// Worlds pushed.
        found: usize,
        /// Worlds due.
        expected: usize,
    },
    /// Values that are no numbers.
    #[error(
        "expected values: action {action} of game {game} of the batch is worth {value}, expected a finite number. \
         Look for NaN and infinities in the oracle, or raise the temperature"
    )]
    NotFinite {
        /// Its place in the batch.
        game: usize,
        /// The action.
        action: usize,
        /// Its expected value.
        value: f32,
    },
}

eggroll_core::debug_is_message!(ExpectedValuesError);
