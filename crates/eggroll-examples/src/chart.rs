//! Curves as SVG.

use crate::Failure;
use plotters::prelude::*;
use std::ops::Range;
use std::path::Path;

pub use plotters::prelude::SeriesLabelPosition;
pub use plotters::style::{BLUE, RED, RGBColor};

const GREY: RGBColor = RGBColor(120, 120, 120);

/// A chart of lines.
pub struct Lines<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// The horizontal axis: what it shows, and from where to where.
    pub x: (&'a str, Range<f64>),
    /// The vertical axis.
    pub y: (&'a str, Range<f64>),
    /// Horizontal lines, each with its name or an empty one.
    pub levels: &'a [(&'a str, f64)],
    /// The curves.
    pub series: &'a [Series<'a>],
    /// Where the curves' names stand, if they have any.
    pub legend: SeriesLabelPosition,
}

/// One curve.
pub struct Series<'a> {
    /// Its name, or an empty one; curves of one name share an entry.
    pub label: &'a str,
    /// Of the line.
    pub color: RGBColor,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether every point is marked.
    pub dots: bool,
}

/// Draws a chart.
///
/// # Errors
///
/// What the file system says.
pub fn lines(path: &Path, chart: &Lines<'_>) -> Result<(), Failure> {
    let Lines { title, x: (x_name, x), y: (y_name, y), levels, series, legend } = chart;
    let root = SVGBackend::new(path, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut canvas = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(x.clone(), y.clone())?;
    canvas.configure_mesh().x_desc(*x_name).y_desc(*y_name).draw()?;
    for (name, level) in *levels {
        canvas.draw_series(LineSeries::new([(x.start, *level), (x.end, *level)], GREY.stroke_width(1)))?;
        if !name.is_empty() {
            let place = (x.start + 0.01 * (x.end - x.start), *level);
            let font = ("sans-serif", 14).into_font().color(&GREY);
            canvas.draw_series([Text::new((*name).to_owned(), place, font)])?;
        }
    }
    for (index, Series { label, color, points, dots }) in series.iter().enumerate() {
        let color = *color;
        let line = canvas.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
        if !label.is_empty() && series[..index].iter().all(|before| before.label != *label) {
            line.label(*label).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        }
        if *dots {
            canvas.draw_series(points.iter().map(|at| Circle::new(*at, 3, color.filled())))?;
        }
    }
    if series.iter().any(|series| !series.label.is_empty()) {
        let mut labels = canvas.configure_series_labels();
        labels.position(legend.clone()).border_style(BLACK).background_style(WHITE).draw()?;
    }
    root.present()?;
    Ok(())
}
