//! Learning curves.

use crate::Failure;
use crate::chart::{Color, Corner, LineChart, Picture, Series};
use std::path::Path;

/// A curve of returns over environment steps, with its name and color.
pub type Curve = (&'static str, Color, Vec<(f64, f64)>);

/// Draws returns over environment steps, with the return at which the environment is solved.
pub fn draw(path: &Path, title: &str, curves: Vec<Curve>, threshold: f64) -> Result<(), Failure> {
    let end = curves.iter().flat_map(|(_, _, points)| points).map(|(steps, _)| *steps).fold(0.0, f64::max);
    if end == 0.0 {
        return Ok(()); // interrupted before the first generation
    }
    let (unit, name) = if end < 1e6 { (1e3, "thousands") } else { (1e6, "millions") };
    let mut chart = LineChart::new(title)
        .with_axes(format!("environment steps ({name})"), "mean return")
        .with_x_range(0.0..end / unit)
        .with_legend(Corner::LowerRight);
    if threshold.is_finite() {
        chart = chart.with_level("", threshold);
    }
    let scaled = |points: Vec<(f64, f64)>| points.into_iter().map(|(steps, value)| (steps / unit, value)).collect();
    let series = |(label, color, points)| Series::new(label, color, scaled(points));
    let chart = curves.into_iter().map(series).fold(chart, LineChart::with_series);
    Ok(chart.write(path)?)
}
