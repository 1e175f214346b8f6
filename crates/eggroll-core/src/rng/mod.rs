//! Bits and normals: `philox` makes words, `normal` and `integer` turn them into values.

pub mod integer;
pub mod normal;
pub mod philox;
