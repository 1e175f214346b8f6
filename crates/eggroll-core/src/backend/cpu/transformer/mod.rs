//! What a transformer does with rows of any members: products with packed weights, attention, and functions of single rows.

mod attention;
mod exp;
mod matrix;
mod pointwise;
mod product;
mod quantized;
mod rotation;

pub(crate) use attention::Attend;
pub(crate) use matrix::Matrix;
pub(crate) use pointwise::{log_sum_exp, rms_norm, rotary, swiglu};
pub(crate) use product::{MatrixProduct, RowNoise};
pub(crate) use quantized::Quantized;
