//! Bits per byte as SVG.

use crate::report::{Baselines, Point};
use crate::train::Failure;
use plotters::prelude::*;
use std::path::Path;

/// Draws bits per byte over the tokens read, training and validation, with what counting comes to.
pub fn draw(path: &Path, points: &[Point], baselines: Baselines) -> Result<(), Failure> {
    let Some(last) = points.last() else {
        return Ok(());
    };
    let millions = |point: &Point| point.tokens as f64 / 1e6;
    let train = points.iter().filter_map(|point| Some((millions(point), point.train_bits_per_byte?)));
    let valid = points.iter().map(|point| (millions(point), point.valid_bits_per_byte));
    let end = millions(last).max(1e-6);
    let bits = || train.clone().chain(valid.clone()).map(|(_, bits)| bits);
    let lowest = bits().fold(baselines.bigram_bits, f64::min).floor();
    let highest = bits().fold(baselines.unigram_bits, f64::max).min(9.0).ceil();
    let root = SVGBackend::new(path, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("validation: {:.3} bits per byte", last.valid_bits_per_byte), ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..end, lowest..highest)?;
    chart.configure_mesh().x_desc("tokens read (millions)").y_desc("bits per byte").draw()?;
    let grey = RGBColor(120, 120, 120);
    for (name, bits) in [("unigram", baselines.unigram_bits), ("bigram", baselines.bigram_bits)] {
        chart.draw_series(LineSeries::new([(0.0, bits), (end, bits)], grey.stroke_width(1)))?;
        chart.draw_series([Text::new(name, (0.01 * end, bits), ("sans-serif", 14).into_font().color(&grey))])?;
    }
    let line = |color: RGBColor| color.stroke_width(2);
    chart.draw_series(LineSeries::new(train, line(RED)))?.label("training").legend(|(x, y)| swatch(x, y, RED));
    chart.draw_series(LineSeries::new(valid, line(BLUE)))?.label("validation").legend(|(x, y)| swatch(x, y, BLUE));
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    root.present()?;
    Ok(())
}

fn swatch(x: i32, y: i32, color: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 20, y)], color)
}
