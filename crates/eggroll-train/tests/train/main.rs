//! Ask and tell.

mod anchor_decay;
mod clones;
mod device;
mod expectation;
mod fitness;
mod graph;
mod lookups;
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
mod task_projection;
mod tied;
mod votes;
