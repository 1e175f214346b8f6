//! Shared by coordinator and worker: scoring slices, and taking the scores of a generation.

use crate::error::NatsError;
use crate::messages::{Logged, Scores, Work};
use eggroll_run::Error;
use eggroll_run::distribution::Score;
use eggroll_train::{Fitness, Population};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Scores the members of some work.
pub fn score_slice(population: &Population, work: &Work, score: Score<'_>) -> Result<Scores, Error> {
    let (first, members) = (work.first as usize, work.members as usize);
    let fitness = score(&population.slice(first..first + members))?;
    Ok(Scores::of(&fitness, members, population.row_words(fitness.tasks()))?)
}

/// The result of an evaluation, or the text of its error or panic.
pub fn caught<T>(evaluate: impl FnOnce() -> Result<T, Error>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("panic: {}", text(&*panic))),
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message")
}

/// Refuses parameters that differ from the coordinator's, if it has told their digest.
pub fn same_parameters(
    generation: u64,
    expected: Option<&String>,
    digest: &dyn Fn() -> String,
) -> Result<(), NatsError> {
    let Some(expected) = expected else { return Ok(()) };
    let found = digest();
    match found == *expected {
        true => Ok(()),
        false => Err(NatsError::Diverged { generation, expected: expected.clone(), found }),
    }
}

/// The fitness of a population from the scores of all members. If layers learn by part, this node needs their rows: it scores the first
/// pair, if it has scored nothing.
pub fn take(
    population: &Population,
    logged: Logged,
    digest: &dyn Fn() -> String,
    score: Score<'_>,
) -> Result<Fitness, Error> {
    let Logged { settings, digest: expected, scores } = logged;
    let (generation, count) = (population.generation(), scores.values.len());
    if settings != population.settings().into() {
        return Err(NatsError::Settings { generation }.into());
    }
    same_parameters(generation, expected.as_ref(), digest)?;
    if count != population.count() * scores.tasks as usize {
        let expected = format!("{} of each of {} members", scores.tasks, population.count());
        return Err(NatsError::Score { found: format!("{count} scores"), expected }.into());
    }
    let parts = scores.tasks as usize;
    if population.credit().projects(parts) {
        if population.row_words(parts).is_empty() {
            score(&population.slice(0..2))?;
        }
        population.compare_rows(&[&scores.rows[..], &[population.row_words(parts)]].concat());
    }
    Ok(scores.into_fitness())
}
