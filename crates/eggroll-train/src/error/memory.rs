//! More memory than may be used.

/// Why an evaluation or a configuration does not fit into memory.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A chunk of members that does not fit.
    #[error(
        "a chunk of {members} members takes about {needed} bytes{}, more than the {limit} that may be used: {}",
        at_once(.side_by_side), chunk_advice(.fits)
    )]
    Chunk {
        /// Members of the chunk.
        members: usize,
        /// Chunks that are evaluated at the same time.
        side_by_side: usize,
        /// Bytes that they take together.
        needed: u64,
        /// Bytes that may be used.
        limit: u64,
        /// Members of a chunk that fits: 0 if no pair does.
        fits: usize,
    },
    /// Noise that does not fit.
    #[error("{what} takes {needed} bytes, more than the {limit} that may be used: {advice}")]
    Noise {
        /// Which noise.
        what: String,
        /// Bytes of it.
        needed: u64,
        /// Bytes that may be used.
        limit: u64,
        /// A size that fits.
        advice: String,
    },
}

eggroll_core::debug_is_message!(MemoryError);

fn at_once(side_by_side: &usize) -> String {
    if *side_by_side > 1 { format!(" ({side_by_side} chunks at once)") } else { String::new() }
}

fn chunk_advice(fits: &usize) -> String {
    match fits {
        0 => "not even a chunk of 2 members fits".to_owned(),
        _ => format!("a chunk of {fits} members fits"),
    }
}
