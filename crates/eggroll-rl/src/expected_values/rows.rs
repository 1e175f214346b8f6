//! The sampled worlds of all games of a step, as rows for the oracle.

use super::error::ExpectedValuesError;
use super::sampler::{SampledWorlds, WorldSampler};
use super::world_key::WorldKey;
use eggroll_core::scope;
use rayon::prelude::*;
use std::cmp::Reverse;

/// Positions of a step: first `games · worlds` in which is decided, then those in which other players moved.
pub struct PositionRows {
    /// Integers of all positions, and where each begins; then where the last one ends.
    integers: Vec<i32>,
    starts: Vec<usize>,
    /// Moves that other players made: `[moves]`
    pub moves: Vec<i32>,
    /// For each world the numbers of its moves, filled up with that of a move which nobody made: `[games · worlds,
    /// most]`
    pub index: Vec<i32>,
    /// Moves of the world that has most of them.
    pub most: usize,
}

impl PositionRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, number: usize) -> &[i32] {
        &self.integers[self.starts[number]..self.starts[number + 1]]
    }

    /// Numbers of all rows, from the longest to the shortest.
    pub fn by_length(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.len()).collect();
        numbers.sort_by_key(|&number| Reverse(self.row(number).len()));
        numbers
    }

    /// Rows by number, filled up with zeros to the longest of them: `[numbers, longest]`
    pub fn filled(&self, numbers: &[usize]) -> ([usize; 2], Vec<i32>) {
        let longest = numbers.iter().map(|&number| self.row(number).len()).max().unwrap_or(0);
        let mut filled = vec![0; numbers.len() * longest];
        for (&number, place) in numbers.iter().zip(filled.chunks_exact_mut(longest)) {
            let row = self.row(number);
            place[..row.len()].copy_from_slice(row);
        }
        ([numbers.len(), longest], filled)
    }
}

/// Positions of a step, at most: with some 30 integers each they are 2 GB.
const MOST: usize = 1 << 24;

/// Samples the worlds of all games, on all threads.
pub fn sample<S: WorldSampler>(
    sampler: &S,
    games: &[(WorldKey, S::Observation)],
    worlds: u32,
    weighs_moves: bool,
) -> Result<PositionRows, ExpectedValuesError> {
    let fits = |positions: usize| match positions {
        0..=MOST => Ok(()),
        _ => {
            let (games, worlds) = (games.len(), worlds as usize);
            Err(ExpectedValuesError::TooMany { games, worlds, positions, most: MOST })
        }
    };
    fits(games.len().saturating_mul(worlds as usize))?;
    let (size, actions) = (sampler.position_size(), sampler.actions());
    let sample = |(game, (key, observation)): (usize, &(_, _))| {
        let mut sampled = SampledWorlds::new(size, actions, worlds, weighs_moves);
        let source = |error| ExpectedValuesError::Sampler { game, source: Box::new(error) };
        sampler.sample(observation, *key, &mut sampled).map_err(source)?;
        match sampled.ends.len() {
            found if found < worlds as usize => {
                Err(ExpectedValuesError::TooFewWorlds { game, found, expected: worlds as usize })
            }
            _ => Ok(sampled),
        }
    };
    // Inside an evaluation the sampler may be one of its members, which other threads do not know.
    let sampled: Vec<_> = match scope::is_active() {
        true => games.iter().enumerate().map(sample).collect(),
        false => games.par_iter().enumerate().map(sample).collect(),
    };
    // Of several errors that of the first game, on any number of threads.
    let sampled = sampled.into_iter().collect::<Result<Vec<_>, _>>()?;
    fits(sampled.iter().map(|one| one.ends.len() + one.moves.len()).sum())?;
    Ok(joined(sampled, weighs_moves))
}

fn joined(sampled: Vec<SampledWorlds>, weighs_moves: bool) -> PositionRows {
    let mut rows = PositionRows { integers: vec![], starts: vec![0], moves: vec![], index: vec![], most: 0 };
    for positions in sampled.iter().map(|one| &one.worlds).chain(sampled.iter().map(|one| &one.moved_from)) {
        for length in &positions.lengths {
            rows.starts.push(rows.starts[rows.starts.len() - 1] + length);
        }
        rows.integers.extend_from_slice(&positions.integers);
    }
    if !weighs_moves {
        return rows;
    }
    let mut moves: Vec<i32> = sampled.iter().flat_map(|one| one.moves.iter().copied()).collect();
    // There is always a move, so that a step without moves launches as much as others.
    if moves.is_empty() {
        rows.integers.extend_from_within(..rows.starts[1]);
        rows.starts.push(rows.integers.len());
        moves.push(0);
    }
    let counts = |one: &SampledWorlds| {
        let starts = std::iter::once(0).chain(one.ends.iter().copied()).collect::<Vec<_>>();
        starts.windows(2).map(|ends| ends[1] - ends[0]).collect::<Vec<_>>()
    };
    let counts: Vec<usize> = sampled.iter().flat_map(counts).collect();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let nobody = moves.len() as i32;
    let mut index = vec![nobody; counts.len() * most];
    let mut next = 0;
    for (row, count) in index.chunks_exact_mut(most).zip(counts) {
        for place in &mut row[..count] {
            *place = next;
            next += 1;
        }
    }
    PositionRows { moves, index, most, ..rows }
}
