//! The figures as bars: one panel for each, one bar for each backend that ran.

use crate::rows::{Comparison, Figures};
use eggroll_examples::Failure;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

const WIDTH: i32 = 900;
const MARGIN: i32 = 20;
const TITLE: i32 = 34;
const BAR: i32 = 24;
/// Room for names at the left and for values at the right of the bars.
const NAMES: i32 = 220;
const VALUES: i32 = 90;
const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
];

struct Panel {
    title: &'static str,
    value: fn(&Figures) -> f64,
}

const PANELS: [Panel; 6] = [
    Panel { title: "plain inference, ms", value: |figures| figures.times.inference_ms },
    Panel { title: "perturbed forward, ms", value: |figures| figures.times.forward_ms },
    Panel { title: "estimate, ms", value: |figures| figures.times.estimate_ms },
    Panel { title: "forward / inference of the same backend", value: |figures| figures.times.forward_ratio },
    Panel { title: "estimate / inference of the same backend", value: |figures| figures.times.estimate_ratio },
    Panel { title: "MNIST, generations per second", value: |figures| figures.training.generations_per_second },
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws every panel below the one before.
pub fn draw(path: &Path, comparison: &Comparison) -> Result<(), Failure> {
    let ran: Vec<(String, &Figures)> = comparison.ran().map(|(name, _, figures)| (name, figures)).collect();
    let height = TITLE + BAR * ran.len() as i32;
    let total = 2 * MARGIN + height * PANELS.len() as i32;
    let root = SVGBackend::new(path, (WIDTH as u32, total as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    for (index, panel) in PANELS.iter().enumerate() {
        let top = MARGIN + height * index as i32;
        root.draw(&Text::new(panel.title, (MARGIN, top + TITLE / 4), ("sans-serif", 20)))?;
        let bars: Vec<(&str, f64)> =
            ran.iter().map(|(name, figures)| (name.as_str(), (panel.value)(figures))).collect();
        draw_bars(&root, top + TITLE, &bars)?;
    }
    root.present()?;
    Ok(())
}

/// Bars from zero, the longest as long as there is room; every value stands next to its bar, so there is no axis.
fn draw_bars(root: &Area, top: i32, bars: &[(&str, f64)]) -> Result<(), Failure> {
    let longest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    for (index, (name, value)) in bars.iter().enumerate() {
        let (left, top) = (MARGIN + NAMES, top + BAR * index as i32);
        let length = f64::from(WIDTH - MARGIN - VALUES - left) * value / longest;
        let right = left + (length as i32).max(1);
        let color = COLORS[index % COLORS.len()];
        root.draw(&Rectangle::new([(left, top + 3), (right, top + BAR - 3)], color.filled()))?;
        root.draw(&Text::new((*name).to_owned(), (MARGIN, top + 4), ("sans-serif", 16)))?;
        root.draw(&Text::new(format!("{value:.3}"), (right + 6, top + 4), ("sans-serif", 16)))?;
    }
    Ok(())
}
