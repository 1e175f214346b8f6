//! Ask and tell.

mod device;
mod fitness;
mod graph;
mod members;
mod modules;
mod strategy;
mod support;
