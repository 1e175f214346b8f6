//! Several seeds, and a comparison with OpenES: a table, the curves of all runs, the medians.

use super::curves::Curve;
use super::settings::ControlSettings;
use super::train::{ControlPoint, ControlResult, Trainer};
use super::{ControlSession, ControlTask, curves};
use crate::chart::Color;
use crate::names::NoiserName;
use crate::trace;
use crate::{Ending, Failure};
use eggroll::core::messages::shown;
use eggroll::rl::TensorEnvironment;
use eggroll::run::print_line;
use eggroll::run::{JsonLines, RunFolder};
use serde_json::{Value, json};

pub fn run<T: ControlTask>(
    task: &T,
    settings: &ControlSettings,
    compare: bool,
    seeds: u64,
    folder: &RunFolder,
    session: &ControlSession,
) -> Result<(Value, Ending), Failure> {
    let name = task.environment().name();
    let noisers = if compare { vec![NoiserName::Eggroll, NoiserName::OpenEs] } else { vec![settings.noiser] };
    print_line!("{name}: at most {} environment steps for each run", settings.budget);
    print_line!("noiser    seed  solved   env steps  seconds  generations  restarts  mean return");
    let mut log = JsonLines::open(folder.file("curve.jsonl"), 0)?;
    let (mut outcomes, mut drawn) = (Vec::new(), Vec::new());
    let (mut threshold, mut ending) = (f64::INFINITY, Ending::Finished);
    // The noisers take turns, so that both see the same machine.
    'runs: for seed in settings.seed..settings.seed + seeds {
        for &noiser in &noisers {
            if session.signals.came() {
                ending = Ending::Stopped;
                break 'runs;
            }
            trace::section(&format!("{name}, {}, seed {seed}", noiser.name()));
            let settings = ControlSettings { noiser, seed, ..settings.clone() };
            let mut trainer = Trainer::new(task, &settings, session)?;
            threshold = trainer.threshold;
            let mut points: Vec<ControlPoint> = Vec::new();
            let mut report = trainer.report(folder);
            let outcome = trainer.run(session, |point| {
                points.push(point);
                Ok(log.write(&point)?)
            })?;
            report.update(outcome.last.generation);
            report.finish();
            if outcome.ending.is_stopped() {
                ending = Ending::Stopped;
                break 'runs; // says nothing of the noiser
            }
            print(&outcome);
            outcomes.push(outcome);
            drawn.push(curve(noiser, &points));
        }
    }
    let path = folder.file("curve.svg");
    curves::draw(&path, &format!("{name}: mean policy"), drawn, threshold)?;
    print_line!("curves: {}", path.display());
    let mut result = json!({
        "environment": name,
        "threshold": threshold,
        "budget": settings.budget,
        "runs": outcomes.iter().map(figures).collect::<Vec<_>>(),
    });
    for noiser in noisers {
        let of_noiser: Vec<&ControlResult> = outcomes.iter().filter(|outcome| outcome.last.noiser == noiser).collect();
        result[noiser.name()] = summary(noiser, &of_noiser);
    }
    Ok((result, ending))
}

fn curve(noiser: NoiserName, points: &[ControlPoint]) -> Curve {
    let color = if noiser == NoiserName::Eggroll { Color::Blue } else { Color::Red };
    let value = |point: &ControlPoint| point.policy_return.unwrap_or(point.population_return);
    (noiser.name(), color, points.iter().map(|point| (point.env_steps as f64, value(point))).collect())
}

fn print(outcome: &ControlResult) {
    print_line!(
        "{:<9} {:>4} {:>7} {:>10.2}M {:>8.2} {:>12} {:>9} {:>12.1}",
        outcome.last.noiser.name(),
        outcome.last.seed,
        if outcome.solved { "yes" } else { "no" },
        outcome.last.env_steps as f64 / 1e6,
        outcome.last.seconds,
        outcome.last.generation,
        outcome.last.restarts,
        shown(outcome.mean_return, 1)
    );
}

fn figures(outcome: &ControlResult) -> Value {
    json!({
        "noiser": outcome.last.noiser,
        "seed": outcome.last.seed,
        "solved": outcome.solved,
        "mean_return": outcome.mean_return,
        "train_seconds": outcome.last.seconds,
        "env_steps": outcome.last.env_steps,
        "generations": outcome.last.generation,
        "restarts": outcome.last.restarts,
    })
}

/// Prints and returns the medians; a run that was not solved counts as longer than any other.
fn summary(noiser: NoiserName, outcomes: &[&ControlResult]) -> Value {
    let solved = outcomes.iter().filter(|outcome| outcome.solved).count();
    let median = |value: fn(&ControlResult) -> f64| {
        let value = |outcome: &&ControlResult| if outcome.solved { value(outcome) } else { f64::INFINITY };
        let mut values: Vec<f64> = outcomes.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().filter(|median| median.is_finite())
    };
    let (steps, seconds) = (median(|run| run.last.env_steps as f64), median(|run| run.last.seconds));
    let text = |median: Option<f64>| median.map_or("-".to_owned(), |median| format!("{median:.2}"));
    print_line!(
        "{}: {solved} of {} solved; medians: {} million steps, {} s",
        noiser.name(),
        outcomes.len(),
        text(steps.map(|steps| steps / 1e6)),
        text(seconds)
    );
    json!({ "solved": solved, "runs": outcomes.len(), "median_env_steps": steps, "median_seconds": seconds })
}
