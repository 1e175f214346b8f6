//! Bits per byte as SVG.

use crate::report::{Baselines, Point};
use eggroll_examples::Failure;
use eggroll_examples::chart::{self, BLUE, Lines, RED, Series, SeriesLabelPosition};
use std::path::Path;

/// Draws bits per byte over the tokens read, training and validation, with the unigram and bigram baselines.
pub fn draw(path: &Path, points: &[Point], baselines: Baselines) -> Result<(), Failure> {
    let Some(last) = points.last() else {
        return Ok(());
    };
    let millions = |point: &Point| point.tokens as f64 / 1e6;
    let train: Vec<_> = points.iter().filter_map(|point| Some((millions(point), point.train_bits_per_byte?))).collect();
    let valid: Vec<_> = points.iter().map(|point| (millions(point), point.valid_bits_per_byte)).collect();
    let bits = || train.iter().chain(&valid).map(|(_, bits)| *bits);
    let lowest = bits().fold(baselines.bigram_bits, f64::min).floor();
    let highest = bits().fold(baselines.unigram_bits, f64::max).min(9.0).ceil();
    let lines = Lines {
        title: &format!("validation: {:.3} bits per byte", last.valid_bits_per_byte),
        x: ("tokens read (millions)", 0.0..millions(last).max(1e-6)),
        y: ("bits per byte", lowest..highest),
        levels: &[("unigram", baselines.unigram_bits), ("bigram", baselines.bigram_bits)],
        series: &[
            Series { label: "training", color: RED, points: train, dots: false },
            Series { label: "validation", color: BLUE, points: valid, dots: false },
        ],
        legend: SeriesLabelPosition::MiddleRight,
    };
    chart::lines(path, &lines)
}
