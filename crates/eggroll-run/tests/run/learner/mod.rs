//! The learner: what it writes, when it stops, how it continues, and that its numbers are right.

mod decisions;
mod files;
mod logs;
mod numbers;
mod report;
mod resume;
mod task;
mod trouble;
