//! Returns as SVG.

use eggroll_examples::Failure;
use eggroll_examples::chart::{self, BLUE, Lines, RED, Series, SeriesLabelPosition};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One line of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Generations done, from which lines of a log are told apart.
    pub generation: u64,
    pub seconds: f64,
    pub env_steps: u64,
    /// Mean of the population in the generation before, over the steps of training.
    pub population_return: f64,
    /// Mean of the policy as it is, over all steps of an episode.
    pub mean_return: f64,
}

/// Draws the policy's return over steps of the environment, a line for each run.
pub fn draw(path: &Path, runs: &[(&str, &[Point])]) -> Result<(), Failure> {
    let at = |point: &Point| (point.env_steps as f64 / 1e6, point.mean_return);
    let runs = runs.iter().zip([BLUE, RED]);
    let series: Vec<Series<'_>> = runs
        .map(|((label, points), color)| Series { label, color, points: points.iter().map(at).collect(), dots: false })
        .collect();
    let points = || series.iter().flat_map(|series| series.points.iter().copied());
    let end = points().map(|point| point.0).fold(1e-6, f64::max);
    let lowest = points().map(|point| point.1).fold(0.0, f64::min);
    let highest = points().map(|point| point.1).fold(100.0, f64::max);
    let lines = Lines {
        title: &format!("HalfCheetah: mean return up to {highest:.0}"),
        x: ("environment steps (millions)", 0.0..end),
        y: ("mean return of the policy", lowest..1.05 * highest),
        levels: &[],
        series: &series,
        legend: SeriesLabelPosition::LowerRight,
    };
    chart::lines(path, &lines)
}
