//! The streams of noise: known answers, equal bits on every instruction set, statistics.

mod normals;
mod philox;
mod philox_rng;
mod rademacher;
mod rademacher_statistics;
mod statistics;
