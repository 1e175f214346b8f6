//! A log whose scores are evaluated again, all of them or a random share.

use super::Log;
use super::record::Recorded;
use crate::error::{Error, SavedError, UserError};
use burn::module::Module;
use eggroll_core::rng::philox::philox4x32;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use std::ops::Range;
use std::path::Path;

/// The pairs of members that [`verify`] evaluates again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerifyConfig {
    /// Probability of each pair of every generation: 0 evaluates none, 1 all.
    pub share: f64,
    /// Seed of the draws. Nobody who could change the log may know it in advance.
    pub seed: u64,
    /// The generation to end with; `None` for the log's last.
    pub until: Option<u64>,
}

/// A log that has been verified.
pub struct Verified<M> {
    /// The strategy after the last generation.
    pub strategy: EvolutionStrategy,
    /// The model after the last generation.
    pub model: M,
    /// Members that were evaluated, of all generations.
    pub evaluated: u64,
    /// Members of all generations.
    pub members: u64,
}

/// Rebuilds the model, as [`replay_evaluated`](super::replay_evaluated) does, but evaluates only a random share of the pairs. Checks that log, first model
/// and evaluation belong together.
///
/// A false score of one member is found with probability [`share`](VerifyConfig::share); of `n` false pairs, at least one with probability `1 − (1 − share)ⁿ`.
/// If a log was changed afterwards, all generations after the change differ too: they were scored with another model. Scores are compared bit for bit, so a log
/// of this model and evaluation is never refused.
///
/// `evaluate` is asked for some members of the population, by [`slice`](Population::slice). It may answer for all instead, if members are compared
/// with each other. If weights learn from [parts](eggroll_train::Credit), at least one pair of every generation is evaluated.
///
/// # Errors
///
/// As [`replay_from`](super::replay_from), except for the credit; [`SavedError::ReplayFitness`] with the generation and the members, and [`Error::User`] with
/// the error of `evaluate`.
pub fn verify<M: Module>(
    path: &Path,
    strategy: EvolutionStrategy,
    model: M,
    config: &VerifyConfig,
    mut evaluate: impl FnMut(&M, &Population, Range<usize>) -> Result<Fitness, UserError>,
) -> Result<Verified<M>, Error> {
    let log = Log::read(path)?;
    log.check_strategy(&strategy)?;
    let (mut evaluated, mut members) = (0, 0);
    let (strategy, model) = log.replay(strategy, model, config.until, |model, population, scores| {
        let count = population.count();
        members += count as u64;
        let needs_inputs = population.credit().projects(scores.parts(count));
        let mut slices = config.draw(population);
        if slices.is_empty() && needs_inputs {
            slices.push(0..count.min(2));
        }
        // A sign follows from all members.
        if matches!(scores, Recorded::Signs(_)) {
            slices.iter_mut().for_each(|slice| *slice = 0..count);
        }
        let mut parts = None;
        for slice in slices {
            let fitness = evaluate(model, population, slice.clone()).map_err(Error::User)?;
            let slice = if fitness.values().len() == fitness.tasks() * count { 0..count } else { slice };
            compare(path, &scores, &fitness, population.generation(), &slice, count)?;
            evaluated += slice.len() as u64;
            parts = Some(fitness);
            if slice.len() == count {
                break;
            }
        }
        Ok(match parts.filter(|_| needs_inputs) {
            Some(parts) => scores.into_fitness(count).with_steps(parts.steps()),
            None => scores.into_fitness(count),
        })
    })?;
    Ok(Verified { strategy, model, evaluated, members })
}

impl VerifyConfig {
    /// Members of a generation to evaluate, with neighbors merged.
    fn draw(&self, population: &Population) -> Vec<Range<usize>> {
        /// Separates these draws from draws of noise, whose fourth word is a parameter with few bits.
        const DOMAIN: u32 = 0x7e49_0000;
        let (generation, key) = (population.generation(), [self.seed as u32, (self.seed >> 32) as u32]);
        let is_drawn = |pair: usize| {
            let [word, ..] = philox4x32([pair as u32, generation as u32, (generation >> 32) as u32, DOMAIN], key);
            f64::from(word) < self.share * 2f64.powi(32)
        };
        let mut slices: Vec<Range<usize>> = Vec::new();
        for pair in (0..population.count() / 2).filter(|pair| is_drawn(*pair)) {
            match slices.last_mut().filter(|last| last.end == 2 * pair) {
                Some(last) => last.end += 2,
                None => slices.push(2 * pair..2 * pair + 2),
            }
        }
        slices
    }
}

/// Refuses a fitness of some members whose scores differ from the logged ones.
pub(super) fn compare(
    path: &Path,
    scores: &Recorded,
    fitness: &Fitness,
    generation: u64,
    members: &Range<usize>,
    count: usize,
) -> Result<(), Error> {
    if scores.agrees(fitness, members, count) {
        return Ok(());
    }
    Err(SavedError::ReplayFitness { path: path.to_owned(), generation, members: members.clone() }.into())
}
