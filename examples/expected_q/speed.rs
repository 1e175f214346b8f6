//! Decisions, worlds, reads and launches, while hands play against themselves.

use crate::hands::{Hand, play};
use crate::players::{DecisionCost, Player, Thinker};
use eggroll::core::{LaunchCount, counters};
use eggroll::rl::ExpectedValuesError;

/// What decisions take.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    pub work: DecisionCost,
    pub host_reads_per_step: f64,
    /// Of all kernels, Burn's too; 0 on CPUs.
    pub launches_per_step: f64,
}

/// Plays hands to their ends, all four players by expected values, and counts.
pub fn measure(thinker: &Thinker<'_>, games: usize, seed: u64) -> Result<Speed, ExpectedValuesError> {
    let player = Player::ExpectedValues(thinker.clone());
    let mut hands: Vec<Hand> = (0..games as u32).map(|game| Hand::deal(seed, game)).collect();
    let sides = vec![0; games];
    let (before, launched, mut work) = (counters::snapshot(), LaunchCount::start(), DecisionCost::default());
    play(&mut hands, [&player, &player], &sides, seed, &mut work)?;
    let steps = work.steps.max(1) as f64;
    Ok(Speed {
        work,
        host_reads_per_step: (counters::snapshot() - before).host_reads as f64 / steps,
        launches_per_step: launched.kernels() as f64 / steps,
    })
}
