//! Ask and tell.

mod anchor_decay;
mod clones;
mod credit;
mod device;
mod expectation;
mod fitness;
mod graph;
mod master_weights;
mod members;
mod modules;
mod nested;
mod noise_scale;
mod open_ends;
mod optimizer;
mod rate_scale;
mod rayon_pool;
mod scales;
mod scores;
mod strategy;
mod support;
mod tied;
mod transforms;
mod votes;
