//! Bits per byte as SVG.

use super::report::{Baselines, CharLmPoint};
use eggroll_examples::Failure;
use eggroll_examples::chart::{Color, Corner, LineChart, Picture, Series};
use std::path::Path;

/// Draws bits per byte over the tokens read, training and validation, with the unigram and bigram baselines.
pub fn draw(path: &Path, points: &[CharLmPoint], baselines: Baselines) -> Result<(), Failure> {
    let Some(last) = points.last() else {
        return Ok(());
    };
    let millions = |point: &CharLmPoint| point.tokens as f64 / 1e6;
    let train: Vec<_> = points.iter().filter_map(|point| Some((millions(point), point.train_bits_per_byte?))).collect();
    let valid: Vec<_> = points.iter().map(|point| (millions(point), point.valid_bits_per_byte)).collect();
    let bits = || train.iter().chain(&valid).map(|(_, bits)| *bits);
    let lowest = bits().fold(baselines.bigram_bits, f64::min).floor();
    let highest = bits().fold(baselines.unigram_bits, f64::max).min(9.0).ceil();
    let chart = LineChart::new(format!("validation: {:.3} bits per byte", last.valid_bits_per_byte))
        .with_axes("tokens read (millions)", "bits per byte")
        .with_x_range(0.0..millions(last))
        .with_y_range(lowest..highest)
        .with_level("unigram", baselines.unigram_bits)
        .with_level("bigram", baselines.bigram_bits)
        .with_series(Series::new("training", Color::Red, train))
        .with_series(Series::new("validation", Color::Blue, valid))
        .with_legend(Corner::MiddleRight);
    Ok(chart.write(path)?)
}
