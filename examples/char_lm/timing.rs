//! Where the time of a generation goes.

use eggroll::run::Times;
use std::time::{Duration, Instant};

/// Time of the parts of all generations since the start or a resume; validation, samples and checkpoints are not in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// `ask`: noise of the generation.
    pub noise: Duration,
    /// The members' scores, data included.
    pub evaluate: Duration,
    /// `tell`: votes and update.
    pub update: Duration,
    pub generations: u64,
}

impl Timing {
    /// Adds a generation, whose parts in between are timed where they happen.
    pub fn add(&mut self, times: Times) {
        self.noise += times.ask;
        self.update += times.tell;
        self.generations += 1;
    }

    pub fn total(&self) -> Duration {
        self.noise + self.evaluate + self.update
    }

    /// Part of the total, from 0 to 1.
    pub fn share(&self, part: Duration) -> f64 {
        if self.generations == 0 { 0.0 } else { part.as_secs_f64() / self.total().as_secs_f64() }
    }

    /// Bytes that all members read in a generation, for each second of the total.
    pub fn tokens_per_second(&self, tokens: usize) -> f64 {
        let tokens = self.generations as f64 * tokens as f64;
        if self.generations == 0 { 0.0 } else { tokens / self.total().as_secs_f64() }
    }
}

/// Runs `f` and adds its time to `part`.
pub fn timed<R>(part: &mut Duration, f: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = f();
    *part += start.elapsed();
    result
}
