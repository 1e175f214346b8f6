//! Hand-vectorized kernels on slices, one file per operation as in `ops/`.
//!
//! A kernel splits its pairs into tasks for rayon. Each task draws the noise of its own pairs into a scratch buffer
//! that stays in cache, uses it, and discards it. Only the output grows with the population.

mod activation;
mod causal_attention;
mod chain;
mod cross_entropy;
mod dense_linear;
mod dots;
mod epilogue;
mod estimate;
mod exp;
mod gated_recurrence;
pub(crate) mod integer;
mod linear;
mod low_rank_block;
mod low_rank_linear;
mod low_rank_shared;
mod patches;
mod perturbed_embedding;
mod product;
mod rms_norm;
mod row_projection;
mod scratch;
mod source;
mod tile;
mod transformer;
mod vector;

pub(crate) use activation::{activation, sigmoid, tanh, wkv7_decay};
pub(crate) use causal_attention::causal_attention;
pub use chain::ChainRow;
pub(crate) use chain::{ChainForward, ChainNoise, ChainSlices, chain_forward};
pub(crate) use cross_entropy::{member_cross_entropy, row_cross_entropy};
pub(crate) use dense_linear::dense_linear;
pub(crate) use estimate::{dense_estimate, low_rank_estimate};
pub(crate) use gated_recurrence::gated_recurrence;
pub(crate) use linear::{BiasSlice, LinearSlices, SharedRows, packed};
pub(crate) use low_rank_linear::low_rank_linear;
pub(crate) use patches::patches;
pub(crate) use perturbed_embedding::{EmbeddingSlices, perturbed_embedding};
pub(crate) use rms_norm::{rms_norm, rms_normalized};
pub(crate) use row_projection::row_projection;
pub(crate) use source::SourceSlice;
pub(crate) use tile::MAX_COLUMNS;
pub(crate) use transformer::{
    Attend, Blocks, Matrix, MatrixProduct, PackedRows, Quantized, RowNoise, Wkv7, geglu, group_norm, log_sum_exp,
    place, rotary, swiglu,
};
pub(crate) use vector::{noise, perturbed_vector};
