//! Which configuration is the best.

use super::plan::Goal;
use super::trial::{Outcome, Record, Trial};
use crate::median;
use std::collections::BTreeMap;

/// A configuration with the objectives of its seeds.
pub(super) struct Configuration<'a> {
    pub trial: &'a Trial,
    pub objectives: Vec<f64>,
    trials: usize,
}

impl Configuration<'_> {
    pub fn median(&self) -> f64 {
        median(&self.objectives)
    }
}

/// The configurations that are complete, the best first.
pub(super) fn ranking<'a>(goal: Goal, records: &[(&'a Trial, Option<Record>)]) -> Vec<Configuration<'a>> {
    let mut configurations: BTreeMap<String, Configuration<'a>> = BTreeMap::new();
    for (trial, record) in records {
        let entry = configurations.entry(trial.configuration());
        let configuration = entry.or_insert(Configuration { trial, objectives: Vec::new(), trials: 0 });
        configuration.trials += 1;
        configuration.objectives.extend(record.as_ref().and_then(|record| record.objective));
    }
    let complete = configurations.into_values().filter(|of| of.objectives.len() == of.trials);
    let mut ranking: Vec<_> = complete.collect();
    ranking.sort_by(|a, b| match goal {
        Goal::Maximize => b.median().total_cmp(&a.median()),
        Goal::Minimize => a.median().total_cmp(&b.median()),
    });
    ranking
}

/// A word for what became of a trial.
pub(super) fn outcome(record: Option<&Record>) -> String {
    match record.map(|record| record.outcome) {
        None => "pending",
        Some(Outcome::Finished) => "finished",
        Some(Outcome::Failed) => "failed",
        Some(Outcome::TimedOut) => "timed_out",
    }
    .to_owned()
}
