//! The numbers of a log as plots.

use super::plot::{Curve, Plot};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A line of a log.
pub(super) type LogLine = Map<String, Value>;

/// Points of a curve that are drawn: more than a screen has columns.
const POINTS: usize = 1200;
/// Keys that are not numbers of a curve.
const PLACES: [&str; 5] = ["generation", "epoch", "split", "seed", "seconds"];
/// Shown only if something is wrong: numbers that are 0 in a good run.
const TROUBLE: [&str; 3] = ["non_finite_fitness", "non_finite_weights", "tied_pairs"];
/// Most runs of a table that are named.
const NAMED: usize = 6;

/// A plot for each number of a log, validations first. A log counts generations from 0, a plot from 1.
pub(super) fn plots(lines: &[LogLine]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (split, of) in [("valid", " (validation)"), ("train", "")] {
        let lines = of_split(lines, split);
        for key in keys(&lines) {
            let done = points(&lines, &key).into_iter().map(|(generation, number)| (generation + 1.0, number));
            let curve = Curve { label: String::new(), points: done.collect() };
            plots.push(Plot { title: title(&key) + of, curves: vec![curve] });
        }
    }
    plots
}

/// A plot for each number of a program's own table, with a curve for each run in it. Runs are told apart by their texts and seeds.
pub(super) fn tables(lines: &[LogLine]) -> Vec<Plot> {
    let mut runs: BTreeMap<String, Vec<&LogLine>> = BTreeMap::new();
    for line in lines {
        let of_run = |(key, value): (&String, &Value)| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(seed) if key == "seed" => Some(format!("seed {seed}")),
            _ => None,
        };
        runs.entry(line.iter().filter_map(of_run).collect::<Vec<_>>().join(", ")).or_default().push(line);
    }
    let is_named = (2..=NAMED).contains(&runs.len());
    let curve = |(label, lines): (&String, &Vec<&LogLine>), key: &str| Curve {
        label: if is_named { label.clone() } else { String::new() },
        points: points(lines, key),
    };
    let all: Vec<&LogLine> = lines.iter().collect();
    let plot = |key: String| Plot { title: title(&key), curves: runs.iter().map(|run| curve(run, &key)).collect() };
    keys(&all).into_iter().map(plot).collect()
}

/// The last finite value of every number of a split, by name.
pub(super) fn last(lines: &[LogLine], split: &str) -> Vec<(String, f64)> {
    let lines = of_split(lines, split);
    let value = |key: &String| lines.iter().rev().find_map(|line| line.get(key)?.as_f64());
    keys(&lines).iter().filter_map(|key| Some((title(key), value(key)?))).collect()
}

fn of_split<'a>(lines: &'a [LogLine], split: &str) -> Vec<&'a LogLine> {
    lines.iter().filter(|line| line.get("split").and_then(Value::as_str) == Some(split)).collect()
}

/// Keys of numbers.
fn keys(lines: &[&LogLine]) -> BTreeSet<String> {
    let numbers = lines.iter().flat_map(|line| line.iter()).filter(|(_, value)| value.is_number());
    let is_worth = |(key, value): &(&String, &Value)| {
        let is_fine = TROUBLE.contains(&key.as_str()) && value.as_f64() == Some(0.0);
        !is_fine && !PLACES.contains(&key.as_str())
    };
    numbers.filter(is_worth).map(|(key, _)| key.clone()).collect()
}

/// The points of a number, thinned evenly; the last one is always there. JSON has no NaN, but `null`.
fn points(lines: &[&LogLine], key: &str) -> Vec<(f64, f64)> {
    let number = |value: &Value| value.as_f64().or(value.is_null().then_some(f64::NAN));
    let point = |line: &&LogLine| Some((line.get("generation")?.as_f64()?, number(line.get(key)?)?));
    let all: Vec<(f64, f64)> = lines.iter().filter_map(point).collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let kept = all.iter().enumerate().filter(|(index, _)| index.is_multiple_of(step) || index + 1 == all.len());
    kept.map(|(_, point)| *point).collect()
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

    fn line(value: Value) -> LogLine {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn every_number_of_a_log_has_a_plot() {
        let lines = [
            line(
                json!({ "generation": 0, "epoch": 1, "split": "train", "fitness_mean": -1.0, "non_finite_fitness": 0 }),
            ),
            line(json!({ "generation": 1, "epoch": 1, "split": "train", "fitness_mean": null, "own": 3 })),
            line(json!({ "generation": 1, "epoch": 1, "split": "valid", "accuracy": 0.9 })),
            line(json!({ "generation": 1, "split": "settings", "changed": ["x"] })),
        ];
        let titles = |lines: &[LogLine]| plots(lines).into_iter().map(|plot| plot.title).collect::<Vec<_>>();
        assert_eq!(titles(&lines), ["Accuracy (validation)", "Fitness mean", "Own"]);
        let points = &plots(&lines)[1].curves[0].points;
        // The first generation is the first, though its line has the number 0.
        assert!(points[0] == (1.0, -1.0) && points[1].0 == 2.0 && points[1].1.is_nan(), "{points:?}");
        let bad = line(json!({ "generation": 2, "split": "train", "non_finite_fitness": 2 }));
        assert_eq!(titles(&[bad]), ["Non finite fitness"]);
        assert_eq!(last(&lines, "train"), [("Fitness mean".to_owned(), -1.0), ("Own".to_owned(), 3.0)]);
    }

    #[test]
    fn long_logs_are_thinned_and_keep_their_end() {
        let lines: Vec<LogLine> =
            (0..10_001).map(|g| line(json!({ "generation": g, "split": "train", "x": g }))).collect();
        let found = points(&lines.iter().collect::<Vec<_>>(), "x");
        assert!(found.len() <= POINTS + 1 && found.last() == Some(&(10_000.0, 10_000.0)), "{}", found.len());
    }
}
