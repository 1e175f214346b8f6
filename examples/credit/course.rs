//! The course of a run: what it takes, and how good the network is on the way.

use eggroll_examples::{Failure, status};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The first judgement, as a share of the run, and how much later each of the next ones is.
const FIRST: f64 = 0.003;
const NEXT: f64 = 1.25;

/// A judgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Forward passes of a part by a member so far; of episodes, steps.
    pub evaluations: f64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub figure: f64,
}

/// A run. Judging does not count.
#[derive(Debug)]
pub struct Course {
    limit: f64,
    seconds: f64,
    cpu_seconds: f64,
    next: f64,
    is_over: bool,
    points: Vec<Point>,
}

/// What a run returns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub points: Vec<Point>,
    pub peak_bytes: Option<u64>,
}

impl Course {
    pub fn new(limit: f64) -> Self {
        Self { limit, seconds: 0.0, cpu_seconds: 0.0, next: FIRST * limit, is_over: false, points: Vec::new() }
    }

    /// Does a part of the run.
    pub fn train<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let cpu = status::cpu_seconds();
        let start = Instant::now();
        let made = work();
        self.seconds += start.elapsed().as_secs_f64();
        self.cpu_seconds += status::cpu_seconds() - cpu;
        made
    }

    /// The share of its time that is used.
    pub fn done(&self) -> f64 {
        (self.seconds / self.limit).min(1.0)
    }

    pub fn is_over(&self) -> bool {
        self.is_over || self.seconds >= self.limit
    }

    /// Ends it before its time.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether the network is to be judged.
    pub fn is_due(&self) -> bool {
        self.seconds >= self.next || self.is_over()
    }

    /// Keeps a judgement.
    ///
    /// # Errors
    ///
    /// A figure that is not finite: training has diverged.
    pub fn judge(&mut self, evaluations: u64, figure: f64) -> Result<(), Failure> {
        if !figure.is_finite() {
            return Err(format!("training has diverged after {evaluations} evaluations: choose a lower --rate").into());
        }
        let Self { seconds, cpu_seconds, .. } = *self;
        self.points.push(Point { evaluations: evaluations as f64, seconds, cpu_seconds, figure });
        while self.next <= seconds {
            self.next *= NEXT;
        }
        Ok(())
    }

    pub fn outcome(self) -> Outcome {
        Outcome { points: self.points, peak_bytes: status::bytes("VmHWM") }
    }
}
