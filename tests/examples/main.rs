//! What the examples share: settings that solve their task, loaders, run folders, peers, data of language models, a game.

#[path = "../../crates/eggroll-run/tests/run/reliability/allocations.rs"]
mod allocations;
mod cartpole;
mod idx;
#[cfg(unix)]
mod peer;
mod tasks;
mod texas42;
mod text_generation;
mod throughput;
