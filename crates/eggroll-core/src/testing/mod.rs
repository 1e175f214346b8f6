//! The f64 oracle, and the suite that every implementation of the operations passes.

#[cfg(test)]
mod conformance;
pub mod reference;
