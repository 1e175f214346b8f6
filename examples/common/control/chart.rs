//! Learning curves as SVG.

use super::Failure;
use plotters::prelude::*;
use std::path::Path;

pub struct Curve {
    pub label: &'static str,
    pub color: RGBColor,
    /// Environment steps and returns.
    pub points: Vec<(f64, f64)>,
}

/// Draws returns over environment steps, with the return at which the environment is solved.
pub fn draw(path: &Path, title: &str, curves: &[Curve], threshold: f64) -> Result<(), Failure> {
    let all = || curves.iter().flat_map(|curve| &curve.points).filter(|(_, value)| value.is_finite());
    let end = all().map(|(steps, _)| *steps).fold(0.0, f64::max);
    let values = || all().map(|(_, value)| *value).chain(threshold.is_finite().then_some(threshold));
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if end == 0.0 {
        return Ok(()); // interrupted before the first generation
    }
    let (unit, name) = if end < 1e6 { (1e3, "thousands") } else { (1e6, "millions") };
    let room = 0.05 * (highest - lowest).max(1.0);
    let root = SVGBackend::new(path, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end / unit, lowest - room..highest + room)?;
    chart.configure_mesh().x_desc(format!("environment steps ({name})")).y_desc("mean return").draw()?;
    if threshold.is_finite() {
        let grey = RGBColor(120, 120, 120);
        chart.draw_series(LineSeries::new([(0.0, threshold), (end / unit, threshold)], grey.stroke_width(1)))?;
    }
    for (index, curve) in curves.iter().enumerate() {
        let color = curve.color;
        let points = curve.points.iter().map(|(steps, value)| (steps / unit, *value));
        let series = chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        // One entry for all curves of a name.
        if curves[..index].iter().all(|before| before.label != curve.label) {
            series.label(curve.label).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    root.present()?;
    Ok(())
}
