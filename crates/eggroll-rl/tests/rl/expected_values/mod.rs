//! Decisions by sampled worlds: the engine against its formulas, and in Texas 42 against one world at a time.

mod engine;
mod texas42;
