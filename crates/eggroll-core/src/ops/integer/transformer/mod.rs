//! Operations of the integer transformer: int8 activations, int32 sums, and rounding to nearest in place of the floors of the recurrent
//! model, so that what noise adds to the members of a pair is exactly antithetic.
//!
//! Members are folded into the leading axis as in [`crate::ops`]; without [`IntegerNoise`](super::IntegerNoise) an operation is the plain one. `round` rounds to
//! nearest, halves away from zero; `2^h(n)` is about `√n` ([`half_log2`](crate::arithmetic::integer::half_log2)). The formulas are in
//! [`crate::testing::reference::integer_transformer`].

mod add;
mod attention;
mod embedding;
pub(crate) mod extension;
mod head;
mod linear;
mod log_likelihood;
mod norm;
mod operands;
pub(crate) mod portable;
mod rotary;

pub use add::add;
pub use attention::attention;
pub use embedding::embedding;
pub(crate) use extension::IntegerTransformerOps;
pub use head::head;
pub use linear::linear;
pub use log_likelihood::log_likelihood;
pub use norm::norm;
pub use operands::Vector;
pub(crate) use operands::{IntegerBias, VectorPrimitive};
pub use rotary::rotary;

#[cfg(feature = "kernel-sources")]
#[doc(hidden)]
pub mod backend {
    //! The extension trait and its operands, for `eggroll-kernels` alone: nothing checks these calls.
    pub use super::extension::IntegerTransformerOps;
    pub use super::operands::{IntegerBias, VectorPrimitive};
}
