//! The curve of a run as SVG.

use crate::train::Point;
use eggroll_examples::Failure;
use eggroll_examples::chart::{Color, Corner, LineChart, Picture, Series};
use std::path::Path;

/// Draws accuracy on dev data over the seconds of training.
pub fn draw(path: &Path, points: &[Point], title: &str) -> Result<(), Failure> {
    let Some(last) = points.last() else { return Ok(()) };
    let accuracy = points.iter().map(|point| (point.seconds, 100.0 * point.accuracy)).collect();
    let chart = LineChart::new(title)
        .with_axes("seconds of training", "answers on dev that are right (%)")
        .with_x_range(0.0..last.seconds.max(1.0))
        .with_y_range(0.0..100.0)
        .with_series(Series::new("dev", Color::Blue, accuracy))
        .with_legend(Corner::LowerRight);
    Ok(chart.write(path)?)
}
