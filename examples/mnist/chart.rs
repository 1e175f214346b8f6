//! The accuracy curve as SVG.

use eggroll_examples::Failure;
use eggroll_examples::chart::{Color, LineChart, Picture, Series};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One line of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MnistPoint {
    /// Generations done, from which lines of a log are told apart.
    pub generation: u64,
    pub seconds: f64,
    pub member_evaluations: u64,
    pub fitness: f64,
    pub accuracy: f64,
}

/// Draws accuracy over member evaluations.
pub fn draw(path: &Path, points: &[MnistPoint], label: &str) -> Result<(), Failure> {
    let at = |point: &MnistPoint| (point.member_evaluations as f64 / 1e6, 100.0 * point.accuracy);
    let points: Vec<_> = points.iter().map(at).collect();
    let Some((end, last)) = points.last().copied() else {
        return Ok(());
    };
    let lowest = points.iter().map(|point| point.1).fold(100.0, f64::min).clamp(0.0, 99.0).floor();
    let chart = LineChart::new(format!("{label} accuracy: {last:.2} %"))
        .with_axes("member evaluations (millions)", "accuracy (%)")
        .with_x_range(0.0..end)
        .with_y_range(lowest..100.0)
        .with_series(Series::new("", Color::Blue, points).with_dots(3));
    Ok(chart.write(path)?)
}
