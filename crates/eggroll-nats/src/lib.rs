#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod checkpoints;
mod config;
mod connection;
mod coordinator;
mod error;
mod evaluation;
mod inbox;
mod log;
mod messages;
mod notice;
mod queue;
mod run_id;
mod worker;

pub use async_nats::ConnectOptions;
pub use config::NatsConfig;
pub use connection::remove_run;
pub use coordinator::{Coordinator, Counts};
pub use error::NatsError;
pub use notice::{Notice, Notify};
pub use worker::{Worker, WorkerReport};
