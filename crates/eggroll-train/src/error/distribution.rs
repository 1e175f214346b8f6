//! Errors between replicas, with the values in them.

/// Errors of a distributed run. All replicas stop with an error, so none continues alone.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// A rank that told the others that it cannot continue.
    #[error("rank {rank} has failed: see its own error message")]
    Failed {
        /// The rank.
        rank: usize,
    },
    /// A rank that is gone.
    #[error("rank {rank} has left while others wait for it")]
    Left {
        /// The rank.
        rank: usize,
    },
    /// An error of the engine that carries the messages.
    #[error("{engine}: {reason}")]
    Transport {
        /// The value.
        engine: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// A message of a wrong length.
    #[error("rank {rank} sent {found} words where {expected} are due")]
    Length {
        /// The rank that sent it.
        rank: usize,
        /// Its length.
        found: usize,
        /// The expected length.
        expected: usize,
    },
    /// Fitness of another generation.
    #[error("rank {rank} sent the fitness of generation {found}, and generation {expected} is due")]
    Generation {
        /// The rank that sent it.
        rank: usize,
        /// Its generation, modulo 2³².
        found: u32,
        /// The generation that is due, modulo 2³².
        expected: u32,
    },
    /// Fitness of another kind or of another number of tasks.
    #[error("rank {rank} sent {found}, and this rank has {expected}")]
    FitnessKind {
        /// The rank that sent it.
        rank: usize,
        /// The values that it sent.
        found: String,
        /// The values on this rank.
        expected: String,
    },
    /// Replicas that do not begin alike.
    #[error("rank {rank} begins with another {what} than rank 0: {found} and {expected}")]
    Start {
        /// The rank.
        rank: usize,
        /// The difference.
        what: &'static str,
        /// The value of the rank.
        found: String,
        /// The value of rank 0.
        expected: String,
    },
    /// Devices that round differently, with a model of floats.
    #[error(
        "rank {rank} computes on {found} and rank 0 on {expected}: with float parameters they would drift apart. Use \
         equal devices, or an integer model, which gives the same bits on all devices"
    )]
    MixedDevices {
        /// The rank.
        rank: usize,
        /// Its device.
        found: String,
        /// The device of rank 0.
        expected: String,
    },
    /// Replicas that are no longer equal.
    #[error(
        "rank {rank} has diverged by generation {generation}: its parameters have digest {found}, others {expected}"
    )]
    Diverged {
        /// The first rank that differs from most.
        rank: usize,
        /// Generations told when it was noticed.
        generation: u64,
        /// Its digest.
        found: String,
        /// The digest of most ranks, or of the lowest where no digest has more.
        expected: String,
    },
}

eggroll_core::debug_is_message!(DistributionError);
