//! Ask and tell.

mod device;
mod fitness;
mod graph;
mod members;
mod modules;
mod rayon_pool;
mod strategy;
mod support;
