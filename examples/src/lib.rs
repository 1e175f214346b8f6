//! What the examples of eggroll share, so that an example shows its own task only. Not published.
//!
//! | module | what it has |
//! |---|---|
//! | [`main_of`], [`interrupt`] | exit status, threads, signals |
//! | [`options`], [`names`], [`bounds`], [`observers`], [`trace`] | options of command lines |
//! | [`device`] | the device of a command line, opened first |
//! | [`guarded`], [`child`] | work that may panic, or end its process |
//! | [`run_folder`], [`shown`], [`chart`], [`status`] | what a run leaves behind: its folder, its settings, its curve; what memory it takes |
//! | [`digits`] | MNIST's files, mini-batches, and a perceptron |
//! | [`control`] | reinforcement learning: settings, training, tables and curves |
//! | `nats` | options of a run over NATS, with the feature `nats` |
//! | [`median()`] | what is reported of several passes |
//! | [`throughput`] | the passes that are timed, and the peer they are compared with |
//! | `tasks` | language models, with the feature `lm`: data and rewards |
//! | [`texas42`] | a domino game with hidden information: rules, worlds, a solver, an environment |

#![forbid(unsafe_code)]
// Whoever prints past `eggroll::run::terminal` prints into a dashboard.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod bounds;
pub mod chart;
pub mod child;
pub mod control;
pub mod device;
pub mod digits;
pub mod guarded;
pub mod interrupt;
mod median;
pub mod names;
#[cfg(feature = "nats")]
pub mod nats;
pub mod observers;
pub mod options;
mod process;
pub mod run_folder;
pub mod shown;
pub mod status;
#[cfg(feature = "lm")]
pub mod tasks;
pub mod texas42;
pub mod throughput;
pub mod trace;

pub use median::median;
pub use process::{Ending, main_of, status_of};

use std::error::Error;

/// What an example may fail with.
pub type Failure = Box<dyn Error + Send + Sync>;
