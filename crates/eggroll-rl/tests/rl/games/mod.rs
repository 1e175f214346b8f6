//! Rules of games, what players know, and solvers.

pub mod texas42;
