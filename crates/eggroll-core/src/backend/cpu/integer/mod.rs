//! Integer kernels on slices of int8, one file per operation as in `ops/integer`.
//!
//! Only the products are written in vector instructions, once per instruction set (`simd`). Everything else is plain Rust on
//! short arrays, compiled for each instruction set.

mod attention;
mod gru;
mod linear;
mod log_likelihood;
mod nibbles;
mod noise;
mod product;
mod rotary;
mod rows;
mod simd;
mod tile;
mod update;

pub(crate) use attention::{AttentionSizes, attention};
pub(crate) use gru::{GateSlices, gru};
pub(crate) use linear::{LinearSlices, head, linear};
pub(crate) use log_likelihood::{LogitSlice, log_likelihood};
pub(super) use nibbles::{Nibbles, ROWS as NIBBLE_ROWS, Unpacked};
pub(crate) use noise::{NoiseSlice, VectorSlices, noise};
pub(super) use product::{Packed, Panel};
pub(crate) use rotary::rotary;
pub(crate) use rows::{EmbeddingSlices, add, embedding, norm};
pub(super) use simd::{IntegerTiles, MixedKernel, dispatch_mixed};
pub(super) use tile::{COLUMNS, OFFSET, ROWS, TILES, Tile};
pub(crate) use update::{VoteSlices, sum_votes, update};
