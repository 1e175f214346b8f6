//! The accuracy curve as SVG.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;

/// One line of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Generations done, from which lines of a log are told apart.
    pub generation: u64,
    pub seconds: f64,
    pub member_evaluations: u64,
    pub fitness: f64,
    pub accuracy: f64,
}

/// Draws accuracy over member evaluations.
pub fn draw(path: &Path, points: &[Point], label: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(last) = points.last() else {
        return Ok(());
    };
    let millions = |point: &Point| point.member_evaluations as f64 / 1e6;
    let percent = |point: &Point| 100.0 * point.accuracy;
    let lowest = points.iter().map(percent).fold(100.0, f64::min).clamp(0.0, 99.0).floor();
    let root = SVGBackend::new(path, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{label} accuracy: {:.2} %", percent(last)), ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..millions(last).max(1e-6), lowest..100.0)?;
    chart.configure_mesh().x_desc("member evaluations (millions)").y_desc("accuracy (%)").draw()?;
    let line = points.iter().map(|point| (millions(point), percent(point)));
    chart.draw_series(LineSeries::new(line.clone(), BLUE.stroke_width(2)))?;
    chart.draw_series(line.map(|at| Circle::new(at, 3, BLUE.filled())))?;
    root.present()?;
    Ok(())
}
