//! The learner: what it writes, when it stops, how it goes on, and that its numbers are right.

mod decisions;
mod files;
mod numbers;
mod resume;
mod task;
mod trouble;
