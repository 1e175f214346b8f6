//! The parameters of a model: their table, names and patterns, and settings by name.

pub(crate) mod entry;
pub(crate) mod finite;
pub(crate) mod identity;
pub mod paths;
pub(crate) mod pattern;
pub(crate) mod roles;
pub(crate) mod scales;
pub(crate) mod spread;
pub(crate) mod summary;
pub(crate) mod table;
