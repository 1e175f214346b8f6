#![doc = include_str!("../README.md")]

pub mod graph;
pub mod integer;
mod linear;
pub mod loss;

pub use linear::{Linear, LinearConfig};
