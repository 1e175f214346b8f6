//! What the examples share: settings that solve their task, loaders, run folders, sweeps, peers, a game.

mod allocations;
mod cartpole;
mod idx;
#[cfg(unix)]
mod peer;
#[cfg(unix)]
mod sweep;
mod texas42;
