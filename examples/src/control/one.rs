//! One run: its table, its curve, its result.

use super::curves;
use super::train::{ControlPoint, Trainer};
use super::{ControlSession, ControlTask};
use crate::chart::Color;
use crate::trace;
use crate::{Ending, Failure};
use eggroll::core::messages::shown;
use eggroll::rl::TensorEnvironment;
use eggroll::run::print_line;
use eggroll::run::{JsonLines, RunFolder, parameter_digest};
use serde_json::{Value, json};

pub fn run<T: ControlTask>(
    task: &T,
    mut trainer: Trainer<'_, T>,
    folder: &RunFolder,
    session: &ControlSession,
) -> Result<(Value, Ending), Failure> {
    let name = task.environment().name();
    let threshold = trainer.threshold;
    match threshold.is_finite() {
        true => print_line!("{name}: solved at a mean return of {threshold} over 100 episodes"),
        false => print_line!("{name}: no return counts as solved"),
    }
    print_line!("generation  seconds  env steps  population's return  mean policy's return");
    trace::section(name);
    let mut points: Vec<ControlPoint> = Vec::new();
    let mut log = JsonLines::open(folder.file("curve.jsonl"), 0)?;
    let mut report = trainer.report(folder);
    let outcome = trainer.run(session, |point| {
        print(&point);
        points.push(point);
        log.write(&point)?;
        report.update(point.generation);
        Ok(())
    })?;
    let curve = folder.file("curve.svg");
    let steps = |point: &ControlPoint| point.env_steps as f64;
    let population = points.iter().map(|point| (steps(point), point.population_return)).collect();
    let policy = points.iter().filter_map(|point| Some((steps(point), point.policy_return?))).collect();
    let curves = [("population", Color::Orange, population), ("mean policy", Color::Blue, policy)];
    curves::draw(&curve, &format!("{name}: {:.1}", outcome.mean_return), curves.into(), threshold)?;
    print_line!(
        "{}: mean return {:.1} over 100 episodes of the mean policy, after {} steps in {:.2} s",
        match (outcome.solved, outcome.ending) {
            (true, _) => "solved",
            (false, Ending::Finished) if threshold.is_infinite() => "finished",
            (false, Ending::Finished) => "not solved",
            (false, Ending::Stopped) if threshold.is_infinite() => "stopped",
            (false, Ending::Stopped) => "stopped before it was solved",
        },
        shown(outcome.mean_return, 1),
        outcome.last.env_steps,
        outcome.last.seconds
    );
    print_line!("curve: {}", curve.display());
    task.show(trainer.network(), trainer.settings, folder)?;
    report.finish(); // with what the task has drawn
    let result = json!({
        "environment": name,
        "noiser": outcome.last.noiser,
        "solved": outcome.solved,
        "mean_return": outcome.mean_return,
        "train_seconds": outcome.last.seconds,
        "env_steps": outcome.last.env_steps,
        "env_steps_per_second": outcome.env_steps_per_second(),
        "generations": outcome.last.generation,
        "restarts": outcome.last.restarts,
        "seed": outcome.last.seed,
        "parameter_digest": parameter_digest(trainer.network()),
    });
    Ok((result, outcome.ending))
}

fn print(point: &ControlPoint) {
    let tested = point.policy_return.map_or("-".to_owned(), |found| format!("{:.1}", shown(found, 1)));
    print_line!(
        "{:>10} {:>8.2} {:>9.2}M {:>20.1} {tested:>21}",
        point.generation,
        point.seconds,
        point.env_steps as f64 / 1e6,
        shown(point.population_return, 1)
    );
}
