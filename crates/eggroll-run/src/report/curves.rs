//! The curves of a log: which numbers share a chart, and in which order charts come.

use super::chart::Color;
use super::lines::{Corner, LineChart, Series};
use super::scale::Scale;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A line of a log.
pub(super) type Line = Map<String, Value>;

/// Points of a curve that are drawn: more than a screen has columns.
const POINTS: usize = 1200;
/// Width and height of a chart.
const SIZE: (u32, u32) = (460, 300);
/// Keys that are no numbers of a curve.
const PLACES: [&str; 5] = ["generation", "epoch", "split", "seed", "seconds"];

/// Numbers that share a chart.
struct Group {
    title: &'static str,
    /// Keys, each with its name in the legend.
    members: &'static [(&'static str, &'static str)],
    log: bool,
}

/// What the learner measures, behind what the task does.
const GROUPS: [Group; 12] = [
    Group {
        title: "Score of the population",
        members: &[("fitness_best", "best"), ("fitness_mean", "mean"), ("fitness_worst", "worst")],
        log: false,
    },
    Group { title: "Sigma", members: &[("sigma", "")], log: false },
    Group { title: "Learning rate", members: &[("learning_rate", "")], log: false },
    Group {
        title: "Norms",
        members: &[("parameter_norm", "parameters"), ("gradient_norm", "gradient"), ("update_norm", "update")],
        log: true,
    },
    Group { title: "Signal to noise of the estimate", members: &[("signal_to_noise", "")], log: false },
    Group { title: "Split-half correlation", members: &[("split_half_correlation", "")], log: false },
    Group { title: "Curvature to slope", members: &[("curvature_to_slope", "")], log: false },
    Group { title: "Changed weights (share)", members: &[("changed_weights", "")], log: false },
    Group { title: "Most saturated parameter (share)", members: &[("most_saturated", "")], log: false },
    Group { title: "Least entropy of a parameter (bits)", members: &[("least_entropy", "")], log: false },
    Group { title: "Tied pairs (share)", members: &[("tied_pairs", "")], log: false },
    Group { title: "Evaluations per second", members: &[("evaluations_per_second", "")], log: false },
];
/// What has a chart only where something is wrong.
const TROUBLE: [&str; 2] = ["non_finite_fitness", "non_finite_weights"];

/// The charts of a log: validation first, then what the task measures in training, then what the learner does.
pub(super) fn charts(lines: &[Line]) -> Vec<LineChart> {
    let built_in: BTreeSet<&str> = GROUPS.iter().flat_map(|group| group.members).map(|(key, _)| *key).collect();
    let valid: Vec<&Line> = of_split(lines, "valid");
    let train: Vec<&Line> = of_split(lines, "train");
    let mut charts: Vec<LineChart> = keys(&valid).iter().filter_map(|key| own(&valid, key, " (validation)")).collect();
    let is_own = |key: &&String| !built_in.contains(key.as_str()) && !TROUBLE.contains(&key.as_str());
    charts.extend(keys(&train).iter().filter(is_own).filter_map(|key| own(&train, key, "")));
    charts.extend(GROUPS.iter().filter_map(|group| of_group(&train, group)));
    let trouble = TROUBLE.iter().filter(|key| points(&train, key).iter().any(|point| point.1 > 0.0));
    charts.extend(trouble.filter_map(|key| own(&train, key, "")));
    charts
}

/// The charts of a table that a program has logged itself, a line for each run in it: runs are told apart by their texts and seeds.
pub(super) fn tables(lines: &[Line]) -> Vec<LineChart> {
    let mut runs: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let of_run = |(key, value): (&String, &Value)| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(seed) if key == "seed" => Some(format!("seed {seed}")),
            _ => None,
        };
        runs.entry(line.iter().filter_map(of_run).collect::<Vec<_>>().join(", ")).or_default().push(line);
    }
    let colors = || Color::ALL.into_iter().cycle();
    let chart = |key: &String| {
        let curves = runs.iter().zip(colors()).map(|((label, lines), color)| {
            let label = if runs.len() > 1 && runs.len() <= 12 { label.as_str() } else { "" };
            Series::new(label, color, points(lines, key))
        });
        curves.fold(empty(&title(key)), LineChart::with_series)
    };
    let all: Vec<&Line> = lines.iter().collect();
    keys(&all).iter().filter(|key| !points(&all, key).is_empty()).map(chart).collect()
}

/// The last value of every number of a split, by name.
pub(super) fn last(lines: &[Line], split: &str) -> Vec<(String, f64)> {
    let lines = of_split(lines, split);
    let value = |key: &String| Some((title(key), points(&lines, key).last()?.1));
    keys(&lines).iter().filter_map(value).collect()
}

fn of_split<'a>(lines: &'a [Line], split: &str) -> Vec<&'a Line> {
    lines.iter().filter(|line| line.get("split").and_then(Value::as_str) == Some(split)).collect()
}

/// Keys of numbers.
fn keys(lines: &[&Line]) -> BTreeSet<String> {
    let numbers = lines.iter().flat_map(|line| line.iter()).filter(|(_, value)| value.is_number());
    numbers.map(|(key, _)| key.clone()).filter(|key| !PLACES.contains(&key.as_str())).collect()
}

/// The points of a number, thinned evenly; the last one is always there.
fn points(lines: &[&Line], key: &str) -> Vec<(f64, f64)> {
    let point = |line: &&Line| Some((line.get("generation")?.as_f64()?, line.get(key)?.as_f64()?));
    let all: Vec<(f64, f64)> = lines.iter().filter_map(point).collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let kept = all.iter().enumerate().filter(|(index, _)| index.is_multiple_of(step) || index + 1 == all.len());
    kept.map(|(_, point)| *point).collect()
}

fn empty(title: &str) -> LineChart {
    LineChart::new(title).with_axes("generation", "").with_size(SIZE.0, SIZE.1)
}

/// The chart of a number of the task's, if it has points.
fn own(lines: &[&Line], key: &str, of: &str) -> Option<LineChart> {
    let points = points(lines, key);
    let dots = if points.len() <= 60 { 2 } else { 0 };
    let series = |points| Series::new("", Color::Blue, points).with_dots(dots);
    (!points.is_empty()).then(|| empty(&(title(key) + of)).with_series(series(points)))
}

/// The chart of a group, if it has points that are not all 0.
fn of_group(lines: &[&Line], group: &Group) -> Option<LineChart> {
    let mut chart = empty(group.title).with_legend(if group.log { Corner::LowerLeft } else { Corner::LowerRight });
    let mut is_empty = true;
    for ((key, label), color) in group.members.iter().zip(Color::ALL) {
        let points = points(lines, key);
        is_empty &= points.iter().all(|point| point.1 == 0.0);
        chart = chart.with_series(Series::new(if points.is_empty() { "" } else { label }, color, points));
    }
    let scale = if group.log { Scale::Log } else { Scale::Linear };
    (!is_empty).then(|| chart.with_scales(Scale::Linear, scale))
}

/// A key as a name.
fn title(key: &str) -> String {
    let text = key.replace('_', " ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(value: Value) -> Line {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn every_number_of_a_log_has_a_place() {
        let lines = [
            line(
                json!({ "generation": 0, "epoch": 1, "split": "train", "fitness_mean": -1.0, "sigma": 0.1, "own": 3, "non_finite_fitness": 0 }),
            ),
            line(json!({ "generation": 1, "epoch": 1, "split": "train", "fitness_mean": null, "sigma": 0.1 })),
            line(json!({ "generation": 1, "epoch": 1, "split": "valid", "accuracy": 0.9 })),
            line(json!({ "generation": 1, "split": "settings", "changed": ["x"] })),
        ];
        let titles = |lines: &[Line]| -> Vec<String> {
            let text =
                charts(lines).iter().map(|chart| super::super::Picture::svg(chart).expect("drawn")).collect::<String>();
            let names = ["Accuracy (validation)", "Own", "Score of the population", "Sigma", "Norms", "Non finite"];
            names.iter().filter(|name| text.contains(**name)).map(|name| (*name).to_owned()).collect()
        };
        assert_eq!(titles(&lines), ["Accuracy (validation)", "Own", "Score of the population", "Sigma"]);
        let bad = line(json!({ "generation": 2, "split": "train", "non_finite_fitness": 2 }));
        assert_eq!(titles(&[bad]), ["Non finite"]);
        assert_eq!(last(&lines, "valid"), [("Accuracy".to_owned(), 0.9)]);
    }

    #[test]
    fn long_logs_are_thinned_and_keep_their_end() {
        let lines: Vec<Line> =
            (0..10_001).map(|g| line(json!({ "generation": g, "split": "train", "x": g }))).collect();
        let found = points(&lines.iter().collect::<Vec<_>>(), "x");
        assert!(found.len() <= POINTS + 1 && found.last() == Some(&(10_000.0, 10_000.0)), "{}", found.len());
    }
}
