//! One run on several devices, processes or machines.
//!
//! Noise is a pure function of seed, parameter, noise generation and pair, so replicas need nothing of each other but fitness: each
//! evaluates a slice of the population ([`shard`], [`Population::slice`](crate::Population::slice)), all get the fitness of all
//! members ([`evaluate_sharded`]) and make the same update. Any number of replicas makes the bits that one process makes.

mod communicator;
mod error;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nats")]
pub mod nats;
mod replica;
mod sharding;
mod threads;

#[cfg(feature = "mpi")]
pub use self::mpi::Mpi;
pub use communicator::{Alone, Communicator};
pub use eggroll_core::DeviceName;
pub use error::DistributionError;
pub use launch::detect;
pub use replica::Distribution;
pub(crate) use replica::Replica;
pub use sharding::{evaluate_sharded, shard};
pub use threads::{Threads, on_devices};
