//! What the examples of eggroll share, so that an example shows its own task only. Not published.
//!
//! | module | what it has |
//! |---|---|
//! | [`names`], [`trace`], [`interrupt`] | options of command lines, and Ctrl-C |
//! | [`run_folder`], [`chart`], [`status`] | what a run leaves behind: its folder, its curve; what memory it takes |
//! | [`digits`] | MNIST's files, mini-batches, and a perceptron |
//! | [`control`] | reinforcement learning: settings, training, tables and curves |
//! | [`throughput`] | the passes that are timed, and the peer they are compared with |
//! | [`sweep`] | hyper-parameter sweeps |

#![forbid(unsafe_code)]

pub mod chart;
pub mod control;
pub mod digits;
pub mod interrupt;
pub mod names;
pub mod run_folder;
pub mod status;
pub mod sweep;
pub mod throughput;
pub mod trace;

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

/// What an example may fail with.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Runs an example: an error is printed, and the process's exit code says so.
pub fn main_of<E: Display>(run: impl FnOnce() -> Result<(), E>) -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
