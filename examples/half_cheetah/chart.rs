//! Returns as SVG.

use crate::train::Failure;
use plotters::prelude::*;
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
    let points = || runs.iter().flat_map(|(_, points)| points.iter());
    let at = |point: &Point| (point.env_steps as f64 / 1e6, point.mean_return);
    let end = points().map(|point| at(point).0).fold(1e-6, f64::max);
    let lowest = points().map(|point| at(point).1).fold(0.0, f64::min);
    let highest = points().map(|point| at(point).1).fold(100.0, f64::max);
    let root = SVGBackend::new(path, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("HalfCheetah: mean return up to {highest:.0}"), ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(65)
        .build_cartesian_2d(0.0..end, lowest..1.05 * highest)?;
    chart.configure_mesh().x_desc("environment steps (millions)").y_desc("mean return of the policy").draw()?;
    for ((name, points), color) in runs.iter().zip([BLUE, RED]) {
        chart
            .draw_series(LineSeries::new(points.iter().map(at), color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    root.present()?;
    Ok(())
}
