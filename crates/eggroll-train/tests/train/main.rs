//! Ask and tell.

mod device;
mod fitness;
mod graph;
mod members;
mod modules;
mod open_ends;
mod rayon_pool;
mod scores;
mod strategy;
mod support;
