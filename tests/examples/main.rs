//! What the examples share: settings that solve their task, loaders, run folders, sweeps, peers, data of language models.

mod allocations;
mod cartpole;
mod idx;
#[cfg(unix)]
mod peer;
#[cfg(unix)]
mod sweep;
mod tasks;
