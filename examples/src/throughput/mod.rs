//! What a population costs next to plain inference: the network, the passes that are timed, and the peer they are compared with.

mod cell;
mod columns;
mod network;
mod peer;
mod work;

pub use cell::{Cell, GridPlace};
pub use columns::{Column, Pass, Ranked, columns};
pub use network::{Network, Population, Size};
pub use peer::{Peer, PeerResult};
pub use work::{Rates, Work};
