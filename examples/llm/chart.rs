//! The curve of a run as SVG.

use crate::args::TaskName;
use crate::lessons::LlmPoint;
use crate::task::Score;
use eggroll_examples::Failure;
use eggroll_examples::chart::{Color, LineChart, Picture, Series};
use std::path::Path;

/// Draws what dev data say over the seconds of training. Texts that are given are rarely the most probable ones word for word: their
/// likelihood is drawn.
pub fn draw(path: &Path, points: &[LlmPoint], task: TaskName, [before, after]: [Score; 2]) -> Result<(), Failure> {
    let Some(last) = points.last() else { return Ok(()) };
    let seconds = || points.iter().map(|point| point.seconds);
    let chart = match task {
        TaskName::Sft => {
            let title = format!("log-probability of a token of the test: {:.3}, {:.3} before", after.mean, before.mean);
            let means = seconds().zip(points.iter().map(|point| point.mean)).collect();
            let axis = "mean log-probability of a token of dev";
            LineChart::new(title).with_axes("seconds of training", axis).with_series(Series::new(
                "dev",
                Color::Blue,
                means,
            ))
        }
        _ => {
            let title =
                format!("{:.1} % of the test right, {:.1} % before", 100.0 * after.accuracy, 100.0 * before.accuracy);
            let right = seconds().zip(points.iter().map(|point| 100.0 * point.accuracy)).collect();
            LineChart::new(title)
                .with_axes("seconds of training", format!("answers on {} that are right (%)", task.dev_name()))
                .with_y_range(0.0..100.0)
                .with_series(Series::new("dev", Color::Blue, right))
        }
    };
    Ok(chart.with_x_range(0.0..last.seconds.max(1.0)).write(path)?)
}
