//! The noise of each parameter: noisers, roles, and parameters of more axes as matrices.

pub(crate) mod matrix;
pub mod noiser;
pub(crate) mod on_rows;
pub(crate) mod role;
