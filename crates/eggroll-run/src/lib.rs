#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Except for `Text::map`, which is unsafe itself.
#![deny(unsafe_code)]
// Output that bypasses `terminal` would print into a dashboard.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod append_file;
mod checkpoint;
pub mod diagnostics;
mod difference;
mod digest;
pub mod distribution;
pub mod durable;
mod error;
mod folder;
mod guard;
#[cfg(feature = "learner")]
mod learner;
mod lock;
mod log;
#[cfg(feature = "profile")]
pub mod profile;
mod replay;
#[cfg(feature = "report")]
pub mod report;
mod steps;
pub mod terminal;
#[cfg(feature = "text")]
pub mod text;
mod training_loop;

#[cfg(feature = "learner")]
pub use burn::train::{Interrupter, Interruption};
pub use checkpoint::{Checkpoints, load};
pub use difference::difference;
pub use digest::{data_digest, parameter_digest, portable_digest};
#[cfg(feature = "text")]
pub use error::TextError;
#[cfg(feature = "profile")]
pub use error::TraceError;
pub use error::{Error, RunError, SavedError, UserError};
pub use folder::RunFolder;
#[cfg(feature = "learner")]
pub use learner::{
    Display, EarlyStoppingConfig, EsResult, EsTask, EsTraining, EsTrainingConfig, Generation, GenerationItem,
    MetricTarget, ScalarMetric, Scalars, StopReason, Times,
};
#[cfg(feature = "csv")]
pub use log::CsvLog;
#[cfg(feature = "tensorboard")]
pub use log::TensorBoardLog;
pub use log::{JsonLines, LogRow};
pub use replay::{
    ReplayLog, Verified, VerifyConfig, replay, replay_evaluated, replay_from, replay_range, replay_with, verify,
};
pub use training_loop::TrainingLoop;
