//! Training inside Burn's own machinery.
//!
//! burn-train computes gradients by backpropagation, which does not fit, but everything around it does. Its metrics, event store,
//! loggers, renderers (the dashboard), early stopping, checkpointing strategies and interrupter run here unchanged. An *epoch* of
//! burn-train is the interval between two validations, an *iteration* is a generation.

mod best_checkpoints;
mod claim;
mod config;
#[cfg(feature = "tui")]
mod dashboard;
mod follower;
mod json;
mod logs;
mod machinery;
mod metric_names;
mod metrics;
mod norms;
mod progress;
mod rows;
mod run;
mod run_page;
mod screen;
mod task;
mod training;

pub use config::{EarlyStoppingConfig, EsTrainingConfig, MetricTarget};
pub use metrics::{GenerationItem, ScalarMetric, Scalars};
pub use screen::Display;
pub use task::{EsTask, Generation, Times};
pub use training::{EsResult, EsTraining, StopReason};
