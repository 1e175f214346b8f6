//! Arithmetic that has the same bits everywhere: elementary functions of floats, and the integers of Q-EGGROLL.

pub mod elementary;
pub mod integer;
