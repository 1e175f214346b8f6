//! What a sweep has found: table, chart, page and `RESULT` line.

use super::plan::Plan;
use super::ranking::{outcome, ranking};
use super::space::Value;
use super::store::Store;
use super::trial::{Outcome, Record, Trial};
use super::{chart, page};
use crate::chart::{Picture, grid};
use crate::{Ending, Failure};
use eggroll::run::{print_line, print_note, report};
use serde_json::json;
use std::fs;

/// Configurations that are printed.
const SHOWN: usize = 10;

/// Writes `trials.csv`, `summary.svg` and `report.html`, and prints the best configurations, then the `RESULT` line. A configuration is judged by
/// the median over its seeds, and only if all of them finished: otherwise crashes would choose the seeds.
pub fn write(plan: &Plan, trials: &[Trial], store: &Store, seconds: f64, ending: Ending) -> Result<(), Failure> {
    let judged = |record: Record| record.judged_by(&plan.objective);
    let records = trials.iter().map(|trial| Ok((trial, store.load(trial)?.map(judged))));
    let records = records.collect::<Result<Vec<(&Trial, Option<Record>)>, Failure>>()?;
    let count =
        |outcome| records.iter().flat_map(|(_, record)| record).filter(|record| record.outcome == outcome).count();
    let [finished, failed, timed_out] = [Outcome::Finished, Outcome::Failed, Outcome::TimedOut].map(count);

    let table = store.file("trials.csv");
    fs::write(&table, csv(plan, &records)).map_err(|error| format!("{}: {error}", table.display()))?;
    let picture = store.file("summary.svg");
    let points: Vec<_> =
        records.iter().filter_map(|(trial, record)| Some((*trial, record.as_ref()?.objective?))).collect();
    let panels = chart::panels(plan, &points);
    let chart = match points.is_empty() {
        true => None,
        false => Some(grid(panels.clone(), chart::COLUMNS).write(&picture).map(|()| &picture)?),
    };

    let ranking = ranking(plan.goal, &records);
    let counts = [("trials", trials.len()), ("finished", finished), ("failed", failed), ("timed out", timed_out)];
    let page = page::page(plan, &counts, &ranking, &panels, &records).write(store.file(report::FILE));
    page.unwrap_or_else(|error| print_note!("warning: the sweep's page is not written: {error}"));
    for configuration in ranking.iter().take(SHOWN) {
        print_line!("{} {:.6}: {}", plan.objective, configuration.median(), configuration.trial.configuration());
    }
    let best = ranking.first().map(
        |best| json!({ "settings": best.trial.settings, "objective": best.median(), "objectives": best.objectives }),
    );
    let result = json!({
        "trials": trials.len(),
        "finished": finished,
        "failed": failed,
        "timed_out": timed_out,
        "pending": trials.len() - finished - failed - timed_out,
        "objective": plan.objective,
        "best": best,
        "seconds": seconds,
        "stopped": ending.is_stopped(),
        "table": table,
        "chart": chart,
    });
    print_line!("RESULT {result}");
    Ok(())
}

fn csv(plan: &Plan, records: &[(&Trial, Option<Record>)]) -> String {
    let names = plan.parameters.keys().map(String::as_str);
    let last = ["seed", plan.objective.as_str(), "seconds", "status"];
    let mut lines: Vec<Vec<String>> =
        vec![["trial", "outcome"].into_iter().chain(names).chain(last).map(quoted).collect()];
    for (trial, record) in records {
        let mut fields = vec![trial.key.clone(), outcome(record.as_ref())];
        fields.extend(trial.settings.values().map(Value::to_string));
        fields.push(trial.seed.map_or(String::new(), |seed| seed.to_string()));
        match record {
            None => fields.extend([String::new(), String::new(), String::new()]),
            Some(record) => fields.extend([
                record.objective.map_or(String::new(), |objective| objective.to_string()),
                format!("{:.3}", record.seconds),
                record.status.clone(),
            ]),
        }
        lines.push(fields.iter().map(|field| quoted(field)).collect());
    }
    lines.iter().map(|fields| fields.join(",") + "\n").collect()
}

/// A field of a line, in quotes where it needs them.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
