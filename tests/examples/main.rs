//! What the examples share: settings that solve their task, loaders, run folders, peers, data of language models, a game.

mod allocations;
mod cartpole;
mod idx;
#[cfg(unix)]
mod peer;
mod tasks;
mod texas42;
