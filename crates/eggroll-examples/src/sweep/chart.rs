//! The objective over every parameter, as SVG.

use super::median::median;
use super::plan::{Goal, Plan};
use super::space::Value;
use super::trial::Trial;
use crate::Failure;
use plotters::prelude::*;
use std::path::Path;

/// Width and height of a panel, one for each parameter.
const PANEL: (u32, u32) = (420, 320);
/// Panels side by side.
const COLUMNS: usize = 3;
/// Numbers that span this factor are drawn on a logarithmic axis.
const WIDE: f64 = 4.0;

/// The horizontal axis of a parameter: a place for every setting.
struct Axis {
    /// Settings with their places, from left to right.
    places: Vec<(f64, Value)>,
    kind: AxisKind,
}

#[derive(Clone, Copy, PartialEq)]
enum AxisKind {
    Linear,
    Log,
    /// Settings that are not numbers, one next to the other.
    Names,
}

/// Draws a panel for every parameter: all trials in blue, the median of each setting over all others in black, the best trial in a
/// red circle.
pub fn draw(path: &Path, plan: &Plan, trials: &[(&Trial, f64)]) -> Result<(), Failure> {
    let columns = plan.parameters.len().min(COLUMNS);
    let rows = plan.parameters.len().div_ceil(COLUMNS);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    let vertical = vertical(trials);
    for (panel, name) in root.split_evenly((rows, columns)).iter().zip(plan.parameters.keys()) {
        let axis = Axis::new(trials.iter().map(|(trial, _)| trial.settings[name].clone()).collect());
        let horizontal = axis.range();
        let mut chart = ChartBuilder::on(panel)
            .caption(format!("{} over {name}", plan.objective), ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(35)
            .y_label_area_size(60)
            .build_cartesian_2d(horizontal.0..horizontal.1, vertical.0..vertical.1)?;
        let (marks, label) = (axis.marks(), |place: &f64| axis.label(*place));
        chart.configure_mesh().disable_x_mesh().x_labels(marks).x_label_formatter(&label).x_desc(name).draw()?;
        let points = trials.iter().map(|(trial, objective)| (axis.place(&trial.settings[name]), *objective));
        chart.draw_series(points.clone().map(|at| Circle::new(at, 3, BLUE.mix(0.5).filled())))?;
        let medians = axis.places.iter().map(|(place, _)| {
            let here: Vec<f64> = points.clone().filter(|point| point.0 == *place).map(|point| point.1).collect();
            (*place, median(&here))
        });
        if axis.kind != AxisKind::Names {
            chart.draw_series(LineSeries::new(medians.clone(), BLACK.stroke_width(2)))?;
        }
        chart.draw_series(medians.map(|at| Circle::new(at, 4, BLACK.filled())))?;
        if let Some(best) = best(plan.goal, trials) {
            let at = (axis.place(&best.0.settings[name]), best.1);
            chart.draw_series([Circle::new(at, 6, RED.stroke_width(2))])?;
        }
    }
    root.present()?;
    Ok(())
}

fn best<'a>(goal: Goal, trials: &[(&'a Trial, f64)]) -> Option<(&'a Trial, f64)> {
    trials.iter().copied().reduce(|best, next| if goal.is_better(next.1, best.1) { next } else { best })
}

/// All objectives with some room.
fn vertical(trials: &[(&Trial, f64)]) -> (f64, f64) {
    padded(trials.iter().map(|(_, objective)| *objective))
}

fn padded(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let room = if high > low { 0.08 * (high - low) } else { 0.5 * high.abs().max(1e-3) };
    (low - room, high + room)
}

impl Axis {
    fn new(mut settings: Vec<Value>) -> Self {
        let numbers: Option<Vec<f64>> = settings.iter().map(Value::number).collect();
        let kind = match &numbers {
            None => AxisKind::Names,
            Some(numbers) => {
                let (low, high) = numbers.iter().fold((f64::INFINITY, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
                if low > 0.0 && high >= WIDE * low { AxisKind::Log } else { AxisKind::Linear }
            }
        };
        match kind {
            AxisKind::Names => settings.sort_by_key(Value::to_string),
            _ => settings.sort_by(|a, b| a.number().partial_cmp(&b.number()).expect("finite numbers")),
        }
        settings.dedup();
        let place = |(index, value): (usize, Value)| match (kind, value.number()) {
            (AxisKind::Log, Some(number)) => (number.log10(), value),
            (AxisKind::Linear, Some(number)) => (number, value),
            _ => (index as f64, value),
        };
        Self { places: settings.into_iter().enumerate().map(place).collect(), kind }
    }

    fn place(&self, setting: &Value) -> f64 {
        let known = self.places.iter().find(|(_, value)| value == setting);
        known.expect("made of all settings").0
    }

    fn range(&self) -> (f64, f64) {
        padded(self.places.iter().map(|(place, _)| *place))
    }

    /// How many labels to ask for.
    fn marks(&self) -> usize {
        if self.kind == AxisKind::Names { self.places.len() + 2 } else { 5 }
    }

    fn label(&self, place: f64) -> String {
        match self.kind {
            AxisKind::Linear => short(place),
            AxisKind::Log => short((10f64).powf(place)),
            AxisKind::Names => {
                let named = self.places.iter().find(|(at, _)| (at - place).abs() < 1e-6);
                named.map_or(String::new(), |(_, value)| value.to_string())
            }
        }
    }
}

/// Three digits.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().expect("a number that was just written");
    rounded.to_string()
}
