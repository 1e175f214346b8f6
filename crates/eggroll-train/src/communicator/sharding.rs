//! The members of each rank, and the fitness of all members.

use super::{Communicator, DistributionError};
use crate::fitness::Fitness;
use crate::population::Population;
use std::ops::Range;

/// The members of `rank` among `size` ranks: whole pairs, `⌊p·rank/size⌋ .. ⌊p·(rank + 1)/size⌋` of `p`. Ranks differ by at most one pair;
/// some shards are empty if there are more ranks than pairs.
///
/// # Panics
///
/// Panics if the members are odd in number, or there is no such rank.
///
/// # Example
///
/// ```
/// use eggroll_train::shard;
///
/// assert_eq!([0, 1, 2].map(|rank| shard(10, rank, 3)), [0..2, 2..6, 6..10]);
/// assert_eq!([0, 1, 2].map(|rank| shard(4, rank, 3)), [0..0, 0..2, 2..4]);
/// ```
#[track_caller]
pub fn shard(members: usize, rank: usize, size: usize) -> Range<usize> {
    assert!(members.is_multiple_of(2) && rank < size, "shard: {members} members, rank {rank} of {size}");
    let pair = |rank| members / 2 * rank / size;
    2 * pair(rank)..2 * pair(rank + 1)
}

/// The fitness of all members: each rank evaluates its [shard](shard()) with `evaluate`, then all ranks exchange scores. The result is
/// the same on all ranks, bit for bit that of `evaluate(population)`.
///
/// A rank without members evaluates the first pair and sends no scores: `tell` needs to know how parameters are used and which rows they
/// get. With credit by [part](crate::Credit), layers whose rows differ between ranks learn from the mean.
///
/// # Errors
///
/// As [`Communicator::all_gather_words`]; [`DistributionError::Generation`], [`DistributionError::FitnessKind`] or
/// [`DistributionError::Length`] if a rank sends scores that do not belong to this population.
///
/// # Panics
///
/// Panics if `evaluate` returns the fitness of other members than the given ones.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::{Alone, EvolutionStrategyConfig, evaluate_sharded};
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let model = LinearConfig::new(2, 1).init(&Device::flex());
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
/// let mut strategy = config.try_init(&model)?;
/// let population = strategy.ask();
/// let x = Tensor::<2>::ones([1, 2], &Device::flex());
/// let fitness = evaluate_sharded(&population, &mut Alone, |slice| {
///     slice.evaluate(|members| members.mean(model.forward_shared(x.clone())))
/// })?;
/// let mut model = model;
/// strategy.tell(&mut model, population, fitness)?;
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn evaluate_sharded<C: Communicator + ?Sized>(
    population: &Population,
    communicator: &mut C,
    evaluate: impl FnOnce(&Population) -> Fitness,
) -> Result<Fitness, DistributionError> {
    let fitness = evaluate(&population.slice(own_members(population, communicator)));
    gather_fitness(population, communicator, fitness)
}

/// The members that a communicator's rank evaluates: its [shard](shard()), or the first pair if that is empty.
pub fn own_members<C: Communicator + ?Sized>(population: &Population, communicator: &C) -> Range<usize> {
    let (first, own) = (population.range().start, own_shard(population, communicator));
    if own.is_empty() { first..first + 2 } else { own }
}

fn own_shard<C: Communicator + ?Sized>(population: &Population, communicator: &C) -> Range<usize> {
    let (all, part) = (population.range(), shard(population.count(), communicator.rank(), communicator.size()));
    all.start + part.start..all.start + part.end
}

/// Exchanges fitness between ranks: takes the fitness of [`own_members`], returns that of all members. The second half
/// of [`evaluate_sharded`].
///
/// # Errors
///
/// As [`evaluate_sharded`].
///
/// # Panics
///
/// Panics if `fitness` does not belong to [`own_members`].
#[track_caller]
pub fn gather_fitness<C: Communicator + ?Sized>(
    population: &Population,
    communicator: &mut C,
    fitness: Fitness,
) -> Result<Fitness, DistributionError> {
    let own = own_shard(population, communicator);
    let (found, members) = (fitness.values().len(), own_members(population, communicator).len());
    assert!(
        found == members * fitness.tasks(),
        "{found} fitness values of {} tasks (Fitness::with_tasks) for {members} members",
        fitness.tasks()
    );
    let kind = ScoreKind { integers: fitness.integers().is_some(), tasks: fitness.tasks(), steps: fitness.steps() };
    let rows = if communicator.size() > 1 { population.row_words(kind.tasks) } else { Vec::new() };
    let mut message =
        vec![population.generation() as u32, u32::from(kind.integers), kind.tasks as u32, kind.steps as u32];
    message.extend(&rows);
    if !own.is_empty() {
        message.extend(words(&fitness));
    }
    let messages = communicator.all_gather_words(&message)?;
    let size = communicator.size();
    let mut all = vec![0; kind.tasks * population.count()]; // [tasks, members]
    let mut rows_of_ranks = Vec::with_capacity(size);
    for (rank, message) in messages.into_iter().enumerate() {
        let part = shard(population.count(), rank, size);
        let (of_rank, scores) = kind.check(rank, population.generation(), [rows.len(), part.len()], &message)?;
        rows_of_ranks.push(of_rank.to_vec());
        for (task, row) in scores.chunks(part.len().max(1)).enumerate() {
            all[task * population.count() + part.start..][..part.len()].copy_from_slice(row);
        }
    }
    population.compare_rows(&rows_of_ranks);
    Ok(kind.fitness(all))
}

/// The scores bit by bit.
fn words(fitness: &Fitness) -> Vec<u32> {
    match fitness.integers() {
        Some(integers) => integers.iter().map(|score| *score as u32).collect(),
        None => fitness.values().iter().map(|score| score.to_bits()).collect(),
    }
}

/// The kind of scores.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ScoreKind {
    integers: bool,
    tasks: usize,
    steps: usize,
}

impl ScoreKind {
    /// Splits a message into the words of rows and the scores, after checking its kind and lengths.
    fn check<'a>(
        &self,
        rank: usize,
        generation: u64,
        [words, members]: [usize; 2],
        message: &'a [u32],
    ) -> Result<(&'a [u32], &'a [u32]), DistributionError> {
        let expected = 4 + words + self.tasks * members;
        let [of, integers, tasks, steps, rest @ ..] = message else {
            return Err(DistributionError::Length { rank, found: message.len(), expected });
        };
        if *of != generation as u32 {
            return Err(DistributionError::Generation { rank, found: *of, expected: generation as u32 });
        }
        let kind = Self { integers: *integers != 0, tasks: *tasks as usize, steps: *steps as usize };
        if kind != *self {
            return Err(DistributionError::FitnessKind { rank, found: kind.to_string(), expected: self.to_string() });
        }
        match message.len() {
            found if found == expected => Ok(rest.split_at(words)),
            found => Err(DistributionError::Length { rank, found, expected }),
        }
    }

    fn fitness(&self, words: Vec<u32>) -> Fitness {
        let fitness: Fitness = match self.integers {
            true => words.into_iter().map(|word| word as i32).collect::<Vec<_>>().into(),
            false => words.into_iter().map(f32::from_bits).collect::<Vec<_>>().into(),
        };
        fitness.with_tasks(self.tasks).with_steps(self.steps)
    }
}

impl std::fmt::Display for ScoreKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.integers { "integer" } else { "float" };
        write!(f, "{kind} scores of {} tasks", self.tasks)?;
        if self.steps > 1 { write!(f, " in sequences of {} steps", self.steps) } else { Ok(()) }
    }
}
