#![doc = include_str!("../README.md")]

mod linear;
pub mod loss;

pub use linear::{Linear, LinearConfig};
