//! Kernels of the integer transformer, one file per operation as in `ops/integer/transformer`; what goes row by row is in `rows`.

mod attention;
mod linear;
mod log_likelihood;
mod rotary;
mod rows;

pub(crate) use attention::{AttentionSizes, attention};
pub(crate) use linear::{LinearSlices, head, linear};
pub(crate) use log_likelihood::log_likelihood;
pub(crate) use rotary::rotary;
pub(crate) use rows::{VectorSlices, add, embedding, norm};
