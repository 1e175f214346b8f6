//! Bits and normals: `philox` makes words, `normal` turns them into values.

pub mod normal;
pub mod philox;
