//! The oracle of floats for tests: perturbed weights written out, projections, operations between layers.

pub(crate) mod members;
pub(crate) mod projection;
pub(crate) mod rows;
