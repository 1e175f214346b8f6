//! Decisions by sampled worlds: the engine against its formulas, and a batch of positions of any length against one
//! world at a time.

mod engine;
mod lengths;
