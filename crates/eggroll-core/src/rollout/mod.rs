//! Policies and environments as data, for kernels that run them without tensors: layers, traced programs, episodes.

pub(crate) mod episodes;
pub(crate) mod layer;
pub(crate) mod program;
