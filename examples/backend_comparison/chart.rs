//! The figures as bars: one panel for each, one bar for each backend that ran.

use super::rows::{Comparison, Figures};
use eggroll_examples::chart::BarChart;

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

/// Every panel below the one before.
pub fn chart(comparison: &Comparison) -> BarChart {
    let bars = |panel: &Panel| comparison.ran().map(|(name, _, figures)| (name, (panel.value)(figures))).collect();
    PANELS.iter().fold(BarChart::new(), |chart, panel| chart.with_panel(panel.title, bars(panel)))
}
