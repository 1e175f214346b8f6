//! One run on several devices, processes or machines.
//!
//! Noise is a pure function of seed, parameter, noise epoch and pair, so replicas exchange only fitness. Each evaluates a slice of the
//! population ([`shard`], [`Population::slice`](eggroll_train::Population::slice)); all get the fitness of all members
//! ([`evaluate_sharded`]) and make the same update. Results are bit-identical for any number of replicas.

mod exchange;
mod job;
#[cfg(feature = "mpi")]
mod mpi;
mod ranks;
mod replica;
mod threads;

#[cfg(feature = "mpi")]
pub use self::mpi::Mpi;
pub use eggroll_core::DeviceName;
pub use eggroll_train::{Alone, Communicator, DistributionError, evaluate_sharded, shard};
pub(crate) use exchange::OfProgram;
pub use exchange::{Exchange, RunStart, Score};
pub use job::detect;
pub use ranks::Ranks;
pub use replica::Distribution;
pub(crate) use replica::Replica;
pub use threads::{Threads, on_devices};
