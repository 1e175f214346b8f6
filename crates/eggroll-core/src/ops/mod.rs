//! Perturbed operations: functions on [`Tensor`](burn::tensor::Tensor), and the backend extension trait behind them.
//!
//! Every function takes a [`PairRange`]: the members of consecutive antithetic pairs. The population is folded
//! into the leading axis, member-major: row block `m` belongs to member `m` of the range.

mod checks;
mod cross_entropy;
mod dense_linear;
mod entry_sum;
mod estimate;
#[doc(hidden)]
pub mod explicit;
pub(crate) mod extension;
mod extension_trait;
pub mod integer;
mod low_rank_linear;
mod noise;
mod operands;
pub(crate) mod part_estimate;
mod patches;
mod perturbed_embedding;
mod perturbed_vector;
pub(crate) mod portable;
mod repeated;
mod row_projection;
pub(crate) mod rows;
mod source;
mod sparse;
mod window;

pub use crate::rng::key::PairRange;
pub use cross_entropy::{member_cross_entropy, row_cross_entropy};
pub use dense_linear::dense_linear;
pub use estimate::{dense_estimate, low_rank_estimate};
pub use low_rank_linear::low_rank_linear;
pub use noise::noise;
pub(crate) use operands::BiasPrimitive;
pub(crate) use operands::DEPENDENT;
pub use operands::{DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise};
pub use part_estimate::{Input, orthonormal_rows};
pub use patches::patches;
pub use perturbed_embedding::perturbed_embedding;
pub use perturbed_vector::perturbed_vector;
pub use repeated::repeated;
pub use row_projection::row_projection;
pub use rows::{CausalAttention, causal_attention, gated_recurrence, gelu, rms_normalized, sigmoid, silu, tanh};
pub(crate) use source::SourcePrimitive;
pub(crate) use source::baseline_mask;
pub use source::{NoiseSource, table_start};
#[cfg(feature = "cube")]
pub(crate) use source::{TABLE_STEP, table_runs};
pub use sparse::{SparseNoise, sparse_embedding, sparse_entries, sparse_estimate, sparse_linear};
pub use window::Window;

pub(crate) use checks::len;
pub(crate) use extension::PerturbedOps;
#[cfg(feature = "kernel-sources")]
#[doc(hidden)]
pub mod backend {
    //! The extension trait and its operands, for `eggroll-kernels` alone: nothing checks these calls.
    pub use super::extension::PerturbedOps;
    pub use super::operands::BiasPrimitive;
    pub use super::source::SourcePrimitive;
}
