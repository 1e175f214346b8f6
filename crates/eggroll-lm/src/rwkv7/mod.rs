//! The RWKV-7 architecture: a recurrent network with a state of fixed size.

mod block;
mod files;
mod head_norm;
mod model;
mod state;
mod time_mix;
mod vector;

pub use crate::load::config::{FileTensor, Stored};
pub use block::{ChannelMix, Rwkv7Block};
pub use head_norm::HeadNorm;
pub use model::Rwkv7;
pub use state::LayerState;
pub use time_mix::TimeMix;
