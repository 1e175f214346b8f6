//! The objective over every parameter, as SVG.

use super::plan::{Goal, Plan};
use super::space::Value;
use super::trial::Trial;
use crate::chart::{Color, LineChart, Scale, Series};
use crate::median;

/// Width and height of a panel, one for each parameter.
const PANEL: (u32, u32) = (420, 320);
/// Panels side by side.
pub const COLUMNS: usize = 3;
/// Numbers that span this factor are drawn on a logarithmic axis.
const WIDE: f64 = 4.0;

/// A panel for every parameter: all trials in blue, the median of each setting over all others in black, the best trial in a red
/// circle.
pub fn panels(plan: &Plan, trials: &[(&Trial, f64)]) -> Vec<LineChart> {
    plan.parameters.keys().map(|name| panel(plan, name, trials)).collect()
}

fn panel(plan: &Plan, name: &str, trials: &[(&Trial, f64)]) -> LineChart {
    let setting = |trial: &Trial| trial.settings[name].clone();
    let axis = Axis::new(trials.iter().map(|(trial, _)| setting(trial)).collect());
    let points: Vec<_> = trials.iter().map(|(trial, objective)| (axis.place(&setting(trial)), *objective)).collect();
    let at = |place: f64| points.iter().filter(|point| point.0 == place).map(|point| point.1).collect::<Vec<_>>();
    let medians = axis.places().map(|place| (place, median(&at(place)))).collect();
    let medians = Series::new("", Color::Black, medians).with_dots(4);
    let medians = if matches!(axis.scale, Scale::Names(_)) { medians.without_line() } else { medians };
    let best = best(plan.goal, trials).map(|(trial, objective)| (axis.place(&setting(trial)), objective));
    let best = Series::new("", Color::Red, best.into_iter().collect()).without_line().with_dots(6).hollow();
    LineChart::new(format!("{} over {name}", plan.objective))
        .with_size(PANEL.0, PANEL.1)
        .with_axes(name, "")
        .with_scales(axis.scale.clone(), Scale::Linear)
        .with_series(Series::new("", Color::Cyan, points).without_line().with_dots(3))
        .with_series(medians)
        .with_series(best)
}

fn best<'a>(goal: Goal, trials: &[(&'a Trial, f64)]) -> Option<(&'a Trial, f64)> {
    trials.iter().copied().reduce(|best, next| if goal.is_better(next.1, best.1) { next } else { best })
}

/// The horizontal axis of a parameter: a place for every setting.
struct Axis {
    /// Settings, from left to right.
    settings: Vec<Value>,
    scale: Scale,
}

impl Axis {
    fn new(mut settings: Vec<Value>) -> Self {
        let numbers: Option<Vec<f64>> = settings.iter().map(Value::number).collect();
        match &numbers {
            None => settings.sort_by_key(Value::to_string),
            Some(_) => settings.sort_by(|a, b| a.number().partial_cmp(&b.number()).expect("finite numbers")),
        }
        settings.dedup();
        let scale = match numbers {
            None => Scale::Names(settings.iter().map(Value::to_string).collect()),
            Some(numbers) => {
                let (low, high) = numbers.iter().fold((f64::INFINITY, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
                if low > 0.0 && high >= WIDE * low { Scale::Log } else { Scale::Linear }
            }
        };
        Self { settings, scale }
    }

    fn places(&self) -> impl Iterator<Item = f64> + '_ {
        self.settings.iter().map(|setting| self.place(setting))
    }

    fn place(&self, setting: &Value) -> f64 {
        match (&self.scale, setting.number()) {
            (Scale::Linear | Scale::Log, Some(number)) => number,
            _ => self.settings.iter().position(|known| known == setting).expect("made of all settings") as f64,
        }
    }
}
