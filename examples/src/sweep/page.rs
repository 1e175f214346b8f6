//! The page of a sweep.

use super::plan::{Goal, Plan};
use super::ranking::{Configuration, outcome};
use super::space::Value;
use super::trial::{Record, Trial};
use crate::chart::{LineChart, Picture};
use eggroll::run::report::{Page, Session};

/// Ranking, charts and all trials, those without a result too.
pub fn page(
    plan: &Plan,
    counts: &[(&str, usize)],
    ranking: &[Configuration<'_>],
    panels: &[LineChart],
    records: &[(&Trial, Option<Record>)],
) -> Page {
    let goal = if plan.goal == Goal::Maximize { "high" } else { "low" };
    let figures = counts.iter().map(|(name, count)| ((*name).to_owned(), count.to_string()));
    let best = ranking.first().map(|best| (format!("best {}", plan.objective), number(best.median())));
    let mut page = Page::new(format!("Sweep of {}", plan.command[0]))
        .with_text(&format!(
            "{} is to be {goal}; a configuration is judged by the median over its seeds.",
            plan.objective
        ))
        .with_figures(&best.into_iter().chain(figures).collect::<Vec<_>>());
    if !ranking.is_empty() {
        page = page.with_heading("Objective over every parameter");
        page = page.with_text("Trials in light blue, medians of a setting in black, the best trial in a red circle.");
        page = page.with_pictures(&panels.iter().filter_map(|panel| panel.svg().ok()).collect::<Vec<_>>());
    }
    let names: Vec<&str> = plan.parameters.keys().map(String::as_str).collect();
    let row = |configuration: &Configuration<'_>| {
        let settings = configuration.trial.settings.values().map(Value::to_string);
        let seeds = configuration.objectives.len().to_string();
        [number(configuration.median()), seeds].into_iter().chain(settings).collect::<Vec<_>>()
    };
    let titles = [&[plan.objective.as_str(), "seeds"], &names[..]].concat();
    page =
        page.with_table("Complete configurations, best first", &titles, &ranking.iter().map(row).collect::<Vec<_>>());
    let row = |(trial, record): &(&Trial, Option<Record>)| {
        let record = record.as_ref();
        let objective = record.and_then(|record| record.objective).map_or_else(String::new, number);
        let seconds = record.map_or_else(String::new, |record| format!("{:.1}", record.seconds));
        vec![trial.key.clone(), outcome(record), objective, seconds, trial.label()]
    };
    let titles = ["trial", "outcome", plan.objective.as_str(), "seconds", "settings"];
    page.with_table("Trials", &titles, &records.iter().map(row).collect::<Vec<_>>())
        .with_facts("Machine, commit, time", &Session::now("as the command says", 0).facts())
}

fn number(objective: f64) -> String {
    format!("{objective:.6}")
}
