//! The table, the pictures and the RESULT lines.

use crate::TaskName;
use crate::cartpole::SOLVED;
use crate::course::{Outcome, Point};
use crate::learn::Method;
use eggroll::run::print_line;
use eggroll_examples::chart::{AxisScale, Color, Corner, LineChart, Picture, Series};
use eggroll_examples::{Failure, median};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Seeds whose curves are drawn.
const DRAWN: usize = 3;

/// One task, one method, one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreditRun {
    pub task: TaskName,
    pub method: Method,
    pub seed: u64,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl CreditRun {
    fn last(&self) -> Point {
        *self.outcome.points.last().expect("judged at its end")
    }
}

impl TaskName {
    fn figure(self) -> &'static str {
        match self {
            Self::Mnist => "accuracy (%)",
            Self::Shakespeare => "bits per byte",
            Self::Cartpole => "mean return",
            #[cfg(feature = "lm")]
            Self::Words => "accuracy (%)",
        }
    }

    /// Whether `figure` is at least as good as `goal`.
    fn reaches(self, figure: f64, goal: f64) -> bool {
        if self == Self::Shakespeare { figure <= goal } else { figure >= goal }
    }

    fn evaluations(self) -> &'static str {
        match self {
            Self::Mnist => "images read by members",
            Self::Shakespeare => "bytes read by members",
            Self::Cartpole => "environment steps",
            #[cfg(feature = "lm")]
            Self::Words => "tokens read by members",
        }
    }
}

/// All runs so far.
#[derive(Default)]
pub struct Report {
    runs: Vec<CreditRun>,
}

impl Report {
    /// Keeps a run, in credit.json too, and prints its RESULT line.
    pub fn add(&mut self, run: CreditRun, folder: &Path) -> Result<(), Failure> {
        let (end, peak_bytes) = (run.last(), run.outcome.peak_bytes);
        let result = json!({
            "task": run.task, "method": run.method, "seed": run.seed, "figure": end.figure, "evaluations": end.evaluations,
            "seconds": end.seconds, "cpu_seconds": end.cpu_seconds, "peak_bytes": peak_bytes,
        });
        print_line!("RESULT {result}");
        self.runs.push(run);
        let path = folder.join("credit.json");
        fs::write(&path, serde_json::to_vec(&self.runs)?).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    pub fn has(&self, task: TaskName) -> bool {
        self.runs.iter().any(|run| run.task == task)
    }

    fn of(&self, task: TaskName, method: Method) -> Vec<&CreditRun> {
        self.runs.iter().filter(|run| (run.task, run.method) == (task, method)).collect()
    }

    /// The median end of means; on CartPole what solves it.
    fn goal(&self, task: TaskName) -> Option<f64> {
        match (task, self.of(task, Method::Means)) {
            (TaskName::Cartpole, _) => Some(SOLVED),
            (_, runs) if runs.is_empty() => None,
            (_, runs) => Some(medians(&runs.iter().map(|run| run.last()).collect::<Vec<_>>()).figure),
        }
    }

    /// A line for each method: medians of seeds.
    pub fn table(&self, task: TaskName) -> String {
        let goal = self.goal(task);
        let mut table = format!("{task}: {} at the end, median (range)", task.figure());
        if let Some(goal) = goal {
            let _ = write!(table, "; to goal {}", short(goal));
        }
        table += "\nmethod          end   (range)            evals     s CPU s   MiB    evals     s";
        for method in Method::ALL {
            let runs = self.of(task, method);
            if runs.is_empty() {
                continue;
            }
            let ends: Vec<Point> = runs.iter().map(|run| run.last()).collect();
            let figures = || ends.iter().map(|end| end.figure);
            let (low, high) = (figures().fold(f64::INFINITY, f64::min), figures().fold(f64::NEG_INFINITY, f64::max));
            let range = format!("({} to {})", short(low), short(high));
            let bytes = runs.iter().filter_map(|run| run.outcome.peak_bytes).max().unwrap_or(0);
            let end = medians(&ends);
            let _ = write!(
                table,
                "\n{method:<15} {:>5} {range:<16} {:>7} {:>5.1} {:>5.1} {:>5}",
                short(end.figure),
                count(end.evaluations),
                end.seconds,
                end.cpu_seconds,
                bytes >> 20,
            );
            let Some(goal) = goal else { continue };
            let first =
                |run: &&CreditRun| run.outcome.points.iter().find(|point| task.reaches(point.figure, goal)).copied();
            let reached: Vec<Point> = runs.iter().filter_map(first).collect();
            let never = runs.len() - reached.len();
            // The median of all seeds, if most of them get there.
            if 2 * never >= runs.len() {
                let _ = write!(table, " {:>8}", "not");
                continue;
            }
            let never = vec![Point { evaluations: f64::INFINITY, seconds: f64::INFINITY, ..end }; never];
            let reached = medians(&[reached, never].concat());
            let _ = write!(table, " {:>8} {:>5.1}", count(reached.evaluations), reached.seconds);
        }
        table
    }

    /// The curves of a task's first seeds, over evaluations and over seconds.
    pub fn draw(&self, task: TaskName, folder: &Path) -> Result<(), Failure> {
        let [evaluations, seconds] =
            ["evaluations", "seconds"].map(|name| folder.join(format!("{task}-{name}.svg").to_lowercase()));
        self.chart(task, task.evaluations(), |point| point.evaluations).write(evaluations)?;
        self.chart(task, "seconds of training", |point| point.seconds).write(seconds)?;
        Ok(())
    }

    fn chart(&self, task: TaskName, axis: &str, value: impl Fn(&Point) -> f64) -> LineChart {
        let colors = [Color::Black, Color::Orange, Color::Red, Color::Blue];
        let corner = if task.reaches(1.0, 0.0) { Corner::LowerRight } else { Corner::UpperRight };
        let mut chart = LineChart::new(task.to_string())
            .with_axes(axis, task.figure())
            .with_scales(AxisScale::Log, AxisScale::Linear)
            .with_legend(corner);
        for (method, color) in Method::ALL.into_iter().zip(colors) {
            for run in self.of(task, method).into_iter().take(DRAWN) {
                let points = run.outcome.points.iter().map(|point| (value(point), point.figure)).collect();
                chart = chart.with_series(Series::new(method.to_string(), color, points));
            }
        }
        chart
    }
}

fn medians(points: &[Point]) -> Point {
    let of = |value: fn(&Point) -> f64| median(&points.iter().map(value).collect::<Vec<_>>());
    Point {
        evaluations: of(|point| point.evaluations),
        seconds: of(|point| point.seconds),
        cpu_seconds: of(|point| point.cpu_seconds),
        figure: of(|point| point.figure),
    }
}

/// In four digits.
fn short(value: f64) -> String {
    let digits = if value < 10.0 { 3 } else { 1 + usize::from(value < 100.0) };
    format!("{value:.digits$}")
}

/// 1234567 as 1.23M.
fn count(value: f64) -> String {
    match value {
        _ if value >= 1e9 => format!("{:.2}G", value / 1e9),
        _ if value >= 1e6 => format!("{:.2}M", value / 1e6),
        _ => format!("{:.1}k", value / 1e3),
    }
}
