//! Groups: what the streams of Gaussian values and signs are generated in.

/// Philox blocks in a group, one for each lane of the widest vectors.
pub(crate) const BLOCKS: usize = 16;
