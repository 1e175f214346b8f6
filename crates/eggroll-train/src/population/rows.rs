//! Whether the rows that a layer is given belong to the parts.

use super::credits::EstimatePlan;
use super::row_check::RowCheck;
use super::{MemberChunk, Population};
use crate::fitness::Fitness;
use eggroll_core::ops::Input;
use eggroll_core::scope::{Inputs, MovedRows};
use eggroll_core::sync::locked;
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::sync::Arc;

/// Parts whose rows are moved to see which scores depend on them, as shares of all parts. They are not simple fractions, at which different
/// orders of rows agree.
const MOVED_PARTS: [f64; 3] = [0.19, 0.47, 0.81];

/// How often each of them is moved, in other directions.
const MOVES: usize = 2;

/// Largest change of another part's score relative to that of the part's own, for example where a norm over the batch couples parts.
const COUPLING: f64 = 0.25;

/// How the scores `[parts, members]` are ordered.
#[derive(Clone, Copy)]
pub(super) struct ScoreParts {
    pub count: usize,
    pub steps: usize,
}

impl ScoreParts {
    /// The rows that would belong to a part, for every use of a parameter, in order.
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

/// Changes of scores by moving a part's rows: the part's own, the largest of a later step of its sequence, and the largest of another
/// part.
#[derive(Clone, Copy, Default)]
struct Change {
    own: f64,
    later: f64,
    other: f64,
}

impl Change {
    /// For one member, from the scores `[parts, members]` before and after.
    fn of(parts: ScoreParts, part: usize, member: usize, before: &Fitness, after: &Fitness) -> Self {
        let members = before.values().len() / parts.count;
        let mut change = Self::default();
        for other in 0..parts.count {
            let [before, after] = [before, after].map(|scores| f64::from(scores.values()[other * members + member]));
            let by = (after - before).abs();
            if by.is_nan() {
                continue;
            }
            let most = match other == part {
                true => &mut change.own,
                false if parts.is_later(part, other) => &mut change.later,
                false => &mut change.other,
            };
            *most = most.max(by);
        }
        change
    }

    fn plus(self, next: &Self) -> Self {
        Self { own: self.own + next.own, later: self.later + next.later, other: self.other + next.other }
    }

    /// The verdict on the rows.
    fn check(self) -> RowCheck {
        let Self { own, later, other } = self;
        match own.max(later).max(other) {
            0.0 => RowCheck::Silent,
            // A row that only later scores depend on belongs to them.
            _ if own == 0.0 || other > COUPLING * own => RowCheck::Mixed,
            _ => RowCheck::OfParts,
        }
    }
}

impl Population {
    /// The parameters whose rows are to be looked at, by position.
    pub(super) fn unknown_rows(&self, checks: &[RowCheck], parts: ScoreParts, noted: &[Inputs]) -> Vec<usize> {
        let entries = self.perturbation.table.entries();
        let is_due = |at: &usize| {
            checks[*at].is_due(self.generation)
                && matches!(
                    self.plan(&entries[*at], &noted[*at], checks[*at], [parts.count, parts.steps]),
                    EstimatePlan::Parts { .. }
                )
        };
        if parts.count == 1 { Vec::new() } else { (0..entries.len()).filter(is_due).collect() }
    }

    /// Moves the outputs of the parameters at `positions` for the rows of some parts; the scores that change show whose rows they are.
    /// `score` is given members and what is moved; `chunk` is one that fits into memory.
    pub(super) fn look_at_rows<E>(
        &self,
        checks: &mut [RowCheck],
        positions: &[usize],
        parts: ScoreParts,
        noted: &[Inputs],
        chunk: MemberChunk,
        mut score: impl FnMut(MemberChunk, Vec<MovedRows>) -> Result<Fitness, E>,
    ) -> Result<(), E> {
        let mut moved_parts = MOVED_PARTS.map(|share| (share * parts.count as f64) as usize).to_vec();
        moved_parts.dedup();
        // Every part once in each direction, for any chunks.
        let each = moved_parts.len() * MOVES;
        let of = |at: usize| (moved_parts[at % moved_parts.len()], at / moved_parts.len());
        let moves: Vec<(usize, usize, usize)> = positions
            .iter()
            .flat_map(|position| (0..each).map(of).map(move |(part, direction)| (*position, part, direction)))
            .collect();
        let chunk = MemberChunk { count: chunk.count.min(moves.len().next_multiple_of(2)), ..chunk };
        let [before, again] = [score(chunk, Vec::new())?, score(chunk, Vec::new())?];
        let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        if !before.values().iter().zip(again.values()).all(same) {
            positions.iter().for_each(|position| checks[*position] = RowCheck::Silent);
            return Ok(());
        }
        let mut changes: Vec<Change> = Vec::with_capacity(moves.len());
        for moves in moves.chunks(chunk.count) {
            let numbered = || moves.iter().copied().enumerate();
            let moved = numbered().map(|(member, (position, part, direction))| MovedRows {
                member,
                position,
                rows: parts.rows(&noted[position], part),
                direction,
            });
            let after = score(chunk, moved.collect())?;
            changes.extend(numbered().map(|(member, (_, part, _))| Change::of(parts, part, member, &before, &after)));
        }
        for (position, changes) in positions.iter().zip(changes.chunks(each)) {
            checks[*position] = changes.iter().fold(Change::default(), Change::plus).check();
        }
        Ok(())
    }

    /// A word for each parameter: a digest of its rows and their check. Empty if nothing learns by part from scores of this many parts, or nothing
    /// was evaluated. Equal words on all replicas mean equal rows.
    pub fn row_words(&self, parts: usize) -> Vec<u32> {
        let (noted, checks) = (locked(&self.inputs), self.row_checks());
        let projects = self.credit.projects(parts);
        let (Some(noted), Some(checks)) = (noted.as_deref().filter(|_| projects), checks) else { return Vec::new() };
        noted.iter().zip(&*checks).map(|(inputs, check)| word(inputs, *check)).collect()
    }

    /// Compares the [words](Self::row_words) of all replicas: estimates are not projected onto rows that differ between them. For engines that
    /// connect replicas; [`gather_fitness`](crate::gather_fitness) does so.
    pub fn compare_rows(&self, ranks: &[Vec<u32>]) {
        let mut checks = locked(&self.rows);
        let Some(checks) = checks.as_mut() else { return };
        let differs = |at: usize| ranks.iter().any(|words| words.get(at) != ranks[0].get(at));
        let parameters = Arc::make_mut(checks).iter_mut().enumerate();
        parameters.filter(|(at, _)| differs(*at)).for_each(|(_, check)| *check = RowCheck::ByMember);
    }

    /// The checks of each parameter's rows, if there are any.
    pub(crate) fn row_checks(&self) -> Option<Arc<[RowCheck]>> {
        locked(&self.rows).clone()
    }
}

/// A word that depends on the rows, the same on every machine.
fn word(inputs: &Inputs, check: RowCheck) -> u32 {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(inputs.differ), check as u8]);
    // What is not projected onto need not be read.
    if !inputs.differ && check.allows_parts() {
        for used in &inputs.uses {
            let data = match used {
                Input::Rows(x) | Input::Transposed(x) => x.to_data(),
                Input::Indices(indices) => indices.to_data(),
                Input::Other => continue,
            };
            hasher.update((used.rows() as u64).to_le_bytes());
            hasher.update(data.as_bytes());
        }
    }
    let [a, b, c, d, ..] = hasher.finalize()[..] else { unreachable!("32 bytes") };
    u32::from_le_bytes([a, b, c, d])
}
