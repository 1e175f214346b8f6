//! Games with hidden information: rules, what a player knows, and solvers.

pub mod texas42;
