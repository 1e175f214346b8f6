//! Returns as SVG.

use eggroll_examples::Failure;
use eggroll_examples::chart::{Color, Corner, LineChart, Picture, Series};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One line of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MujocoPoint {
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
pub fn draw(path: &Path, title: &str, runs: &[(&str, &[MujocoPoint])]) -> Result<(), Failure> {
    let at = |point: &MujocoPoint| (point.env_steps as f64 / 1e6, point.mean_return);
    let points = || runs.iter().flat_map(|(_, points)| points.iter().map(at));
    let end = points().map(|point| point.0).fold(1e-6, f64::max);
    let lowest = points().map(|point| point.1).fold(0.0, f64::min);
    let highest = points().map(|point| point.1).fold(100.0, f64::max);
    let chart = LineChart::new(format!("{title}: mean return up to {highest:.0}"))
        .with_axes("environment steps (millions)", "mean return of the policy")
        .with_x_range(0.0..end)
        .with_y_range(lowest..1.05 * highest)
        .with_legend(Corner::LowerRight);
    let series =
        |(label, points): &(&str, &[MujocoPoint]), color| Series::new(*label, color, points.iter().map(at).collect());
    let colors = [Color::Blue, Color::Red];
    let chart = runs.iter().zip(colors).fold(chart, |chart, (run, color)| chart.with_series(series(run, color)));
    Ok(chart.write(path)?)
}
