//! What the examples share: settings that solve their task, loaders, run folders, peers, a game.

mod allocations;
mod cartpole;
mod idx;
#[cfg(unix)]
mod peer;
mod texas42;
