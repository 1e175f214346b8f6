//! What a transformer does with rows of any members: products with packed weights, attention, and functions of single rows.

mod attention;
mod bf16;
mod epilogue;
mod group_norm;
mod int4;
mod int8;
mod matrix;
mod nudge;
mod pointwise;
mod product;
mod quantized;
mod rotation;
mod rows;
mod wkv7;

pub(crate) use attention::{Attend, place};
pub(crate) use epilogue::RowNoise;
pub(crate) use group_norm::group_norm;
pub(crate) use matrix::Matrix;
pub(crate) use pointwise::{geglu, log_sum_exp, rotary, swiglu};
pub(crate) use product::MatrixProduct;
pub(crate) use quantized::{Blocks, Quantized};
pub(crate) use rows::PackedRows;
pub(crate) use wkv7::Wkv7;
