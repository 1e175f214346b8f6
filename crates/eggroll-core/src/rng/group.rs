//! Groups: the units in which streams of Gaussian values and signs are generated.

/// Philox blocks in a group, one for each lane of the widest vectors.
pub(crate) const BLOCKS: usize = 16;
