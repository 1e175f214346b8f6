//! Whether the rows that a layer is given are those of the parts.

use super::credits::{Plan, plan};
use super::{MemberChunk, Population};
use crate::fitness::Fitness;
use eggroll_core::ops::Input;
use eggroll_core::scope::{Inputs, MovedRows};
use eggroll_core::sync::locked;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// What the first generation by part has found of the rows that a parameter is given: [`credits`](super::Population::credits) go by it from then
/// on, and [records](crate::StrategyRecord::rows) hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowCheck {
    /// Nothing speaks against it that they are those of the parts.
    OfParts,
    /// Scores of other parts depend on the rows that would be a part's.
    Mixed,
    /// The closure gives others whenever it is called.
    Redrawn,
    /// Members are given different ones.
    ByMember,
}

impl fmt::Display for RowCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OfParts => "its rows are those of the parts",
            Self::Mixed => "scores of other parts depend on a part's rows",
            Self::Redrawn => "its rows are others in every call of the closure",
            Self::ByMember => "members were given different rows",
        })
    }
}

/// Parts whose rows are moved to see which scores depend on them, as shares of all parts: not whole fractions, at which orders of rows agree.
const MOVED_PARTS: [f64; 3] = [0.19, 0.47, 0.81];

/// How often each of them is moved, in other directions.
const MOVES: usize = 2;

/// The score of another part may change by this share of what the own score changes by, as where a norm over the batch couples parts.
const COUPLING: f64 = 0.25;

/// How the scores `[parts, members]` are ordered.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub count: usize,
    pub steps: usize,
}

impl Parts {
    /// What becomes of the rows that would be those of a part: for every use of a parameter, in order.
    fn rows(self, inputs: &Inputs, part: usize) -> Vec<Range<usize>> {
        let (sequence, step) = (part / self.steps, part % self.steps);
        let of_use = |(number, rows): (usize, usize)| match rows / self.count {
            0 if number == step => sequence..sequence + 1, // a recurrence
            0 => 0..0,
            each => part * each..(part + 1) * each,
        };
        inputs.uses.iter().map(|used| used.rows()).enumerate().map(of_use).collect()
    }

    /// Whether a part's row may change the score of another: of a later step of the same sequence.
    fn is_later(self, part: usize, other: usize) -> bool {
        part / self.steps == other / self.steps && part < other
    }
}

/// What moving a part's rows has changed: the score of the part or of one that may follow from it, and the largest change of another.
struct Change {
    own: f64,
    other: f64,
}

impl Change {
    /// Of `[parts, members]` scores before and after, those of one member.
    fn of(parts: Parts, part: usize, member: usize, before: &Fitness, after: &Fitness) -> Self {
        let members = before.values().len() / parts.count;
        let mut change = Self { own: 0.0, other: 0.0 };
        for other in 0..parts.count {
            let [before, after] = [before, after].map(|scores| f64::from(scores.values()[other * members + member]));
            let by = (after - before).abs();
            if by.is_nan() {
                continue;
            }
            let own = other == part || parts.is_later(part, other);
            let most = if own { &mut change.own } else { &mut change.other };
            *most = most.max(by);
        }
        change
    }
}

impl Population {
    /// Moves what parameters make of the rows of some parts, and looks which scores change: notes the parameters of which other parts' do.
    /// `score` is given the chunk, and what is moved in it.
    pub(super) fn find_mixed_rows<E>(
        &self,
        checks: &mut [RowCheck],
        parts: Parts,
        noted: &[Inputs],
        chunk: MemberChunk,
        mut score: impl FnMut(MemberChunk, Vec<MovedRows>) -> Result<Fitness, E>,
    ) -> Result<(), E> {
        let entries = self.perturbation.table.entries();
        let learns_by_part = |at: &usize| {
            matches!(plan(&entries[*at], &noted[*at], checks[*at], parts.count, parts.steps), Plan::Parts { .. })
        };
        let mut moved_parts = MOVED_PARTS.map(|share| (share * parts.count as f64) as usize).to_vec();
        moved_parts.dedup();
        let moved_parts = moved_parts.repeat(MOVES);
        let positions = (0..entries.len()).filter(learns_by_part);
        let moves: Vec<(usize, usize)> =
            positions.flat_map(|position| moved_parts.iter().map(move |part| (position, *part))).collect();
        if parts.count == 1 || moves.is_empty() {
            return Ok(());
        }
        let before = score(chunk, Vec::new())?;
        let mut changes: Vec<Change> = Vec::with_capacity(moves.len());
        for moves in moves.chunks(chunk.count) {
            let moved = |(member, (position, part)): (usize, &(usize, usize))| MovedRows {
                member,
                position: *position,
                rows: parts.rows(&noted[*position], *part),
            };
            let after = score(chunk, moves.iter().enumerate().map(moved).collect())?;
            let change =
                |(member, (_, part)): (usize, &(usize, usize))| Change::of(parts, *part, member, &before, &after);
            changes.extend(moves.iter().enumerate().map(change));
        }
        for (moves, changes) in moves.chunks(moved_parts.len()).zip(changes.chunks(moved_parts.len())) {
            let own: f64 = changes.iter().map(|change| change.own).sum();
            let other: f64 = changes.iter().map(|change| change.other).sum();
            if other > COUPLING * own {
                checks[moves[0].0] = RowCheck::Mixed;
            }
        }
        Ok(())
    }

    /// A word for each parameter that says what it was given, and what was found of it: none without credit by part. Equal words on all ranks
    /// mean equal rows.
    pub(crate) fn row_words(&self) -> Vec<u32> {
        let (noted, checks) = (locked(&self.inputs), self.row_checks());
        let (Some(noted), Some(checks)) = (noted.as_deref(), checks) else { return Vec::new() };
        noted.iter().zip(&*checks).map(|(inputs, check)| word(inputs, *check)).collect()
    }

    /// Compares the [words](Self::row_words) of all ranks: estimates are not projected onto what is not the same on all of them.
    pub(crate) fn compare_rows(&self, ranks: &[Vec<u32>]) {
        let mut checks = locked(&self.rows);
        let Some(checks) = checks.as_mut() else { return };
        let differs = |at: usize| ranks.iter().any(|words| words.get(at) != ranks[0].get(at));
        let parameters = Arc::make_mut(checks).iter_mut().enumerate();
        parameters.filter(|(at, _)| differs(*at)).for_each(|(_, check)| *check = RowCheck::ByMember);
    }

    /// What is known of the rows that each parameter is given, if anything.
    pub(crate) fn row_checks(&self) -> Option<Arc<[RowCheck]>> {
        locked(&self.rows).clone()
    }
}

/// A word that other rows change.
fn word(inputs: &Inputs, check: RowCheck) -> u32 {
    let mut hasher = DefaultHasher::new();
    (inputs.differ, check as u8).hash(&mut hasher);
    // What is not projected onto need not be read.
    if !inputs.differ && check == RowCheck::OfParts {
        for used in &inputs.uses {
            let data = match used {
                Input::Rows(x) | Input::Transposed(x) => x.to_data(),
                Input::Indices(indices) => indices.to_data(),
                Input::Other => continue,
            };
            (data.shape().to_vec(), data.as_bytes()).hash(&mut hasher);
        }
    }
    let hash = hasher.finish();
    (hash ^ hash >> 32) as u32
}
