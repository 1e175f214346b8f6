//! Learning curves.

use crate::Failure;
use crate::chart::{self, Lines, Series, SeriesLabelPosition};
use std::path::Path;

/// Draws returns over environment steps, with the return at which the environment is solved.
pub fn draw(path: &Path, title: &str, mut curves: Vec<Series<'_>>, threshold: f64) -> Result<(), Failure> {
    let all = || curves.iter().flat_map(|curve| &curve.points).filter(|(_, value)| value.is_finite());
    let end = all().map(|(steps, _)| *steps).fold(0.0, f64::max);
    let threshold = threshold.is_finite().then_some(threshold);
    let values = || all().map(|(_, value)| *value).chain(threshold);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if end == 0.0 {
        return Ok(()); // interrupted before the first generation
    }
    let (unit, name) = if end < 1e6 { (1e3, "thousands") } else { (1e6, "millions") };
    let room = 0.05 * (highest - lowest).max(1.0);
    curves.iter_mut().flat_map(|curve| &mut curve.points).for_each(|(steps, _)| *steps /= unit);
    let lines = Lines {
        title,
        x: (&format!("environment steps ({name})"), 0.0..end / unit),
        y: ("mean return", lowest - room..highest + room),
        levels: &threshold.map_or(Vec::new(), |threshold| vec![("", threshold)]),
        series: &curves,
        legend: SeriesLabelPosition::LowerRight,
    };
    chart::lines(path, &lines)
}
