//! Checkpoints and replay logs that cannot be used.

use std::ops::Range;
use std::path::PathBuf;

/// Why a checkpoint or a replay log is refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// A checkpoint or log that cannot be read.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// The checkpoint.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// Another format than this version writes.
    #[error("{path}: it has format {found}, but this version reads format {known}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that is read.
        known: u32,
    },
    /// Noise that this version draws differently.
    #[error(
        "{path}: it was written with version {found} of the noise stream, but this version draws {known}: the run would not \
         continue bit for bit"
    )]
    NoiseStream {
        /// The file.
        path: PathBuf,
        /// Version of the stream when it was written.
        found: u32,
        /// Version of the stream that is drawn now.
        known: u32,
    },
    /// A damaged file.
    #[error("{path}: damaged: its checksum is {found}, but was {expected} when it was written")]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum when it was written.
        expected: String,
        /// The checksum now.
        found: String,
    },
    /// A file of another length than was written.
    #[error("{path}: truncated or added to: {found} bytes long, but {expected} when it was written")]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Bytes when it was written.
        expected: u64,
        /// Bytes now.
        found: u64,
    },
    /// Another model than the one given.
    #[error("{path}: saved from another model: {difference}")]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The first difference.
        difference: String,
    },
    /// A run with a different start: other spreads of relative noise, another anchor of the decay, or other f32 master weights.
    #[error("{path}: saved by a run with another start: {reason}")]
    Start {
        /// The file.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// A replay log with a damaged record that was not merely cut off while it was written.
    #[error("{path}: the record of generation {generation}, at byte {offset}, is damaged, and other records follow it")]
    ReplayRecord {
        /// The log.
        path: PathBuf,
        /// Generation of the record.
        generation: u64,
        /// Where the record begins.
        offset: usize,
    },
    /// A generation that a replay log cannot reproduce.
    #[error("{path}: it reproduces the models of generations {first} to {last}, not that of {asked}")]
    ReplayRange {
        /// The log.
        path: PathBuf,
        /// First generation that can be made.
        first: u64,
        /// Last generation that can be made.
        last: u64,
        /// The generation asked for.
        asked: u64,
    },
    /// Fitness of another generation than the log's next.
    #[error("{path}: the record of generation {expected} is due, but the strategy was told {}", told(.found))]
    ReplayOrder {
        /// The log.
        path: PathBuf,
        /// The generation that the strategy was told last, if any.
        found: Option<u64>,
        /// The generation that is due.
        expected: u64,
    },
    /// A strategy of another configuration than the logged one.
    #[error("{path}: logged with the configuration {logged}, but the strategy's is {given}")]
    ReplayConfig {
        /// The log.
        path: PathBuf,
        /// The configuration of the log.
        logged: String,
        /// The configuration of the strategy.
        given: String,
    },
    /// Scores of parts, whose updates depend on more than the fitness.
    #[error(
        "fitness alone makes no update with credit {credit} and the scores of {parts} parts: estimates depend on what layers were given, too. \
         Set credit to mean, or replay a log with replay_evaluated, which evaluates again (with_replay_log_of for a language model)"
    )]
    ReplayCredit {
        /// The credit.
        credit: String,
        /// Parts that every member has a score of.
        parts: usize,
    },
    /// An evaluation that does not give the fitness of the log.
    #[error(
        "{path}: the evaluation of generation {generation} does not give the logged fitness of members {}..{}. Use \
         the data, score and number format of the logged run; if they are the same, the log was changed", .members.start, .members.end
    )]
    ReplayFitness {
        /// The log.
        path: PathBuf,
        /// The generation.
        generation: u64,
        /// The members that were evaluated.
        members: Range<usize>,
    },
}

eggroll_core::debug_is_message!(SavedError);

fn told(generation: &Option<u64>) -> String {
    generation.map_or_else(|| "nothing yet".to_owned(), |generation| format!("generation {generation} last"))
}
