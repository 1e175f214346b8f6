//! The parameter table as text.

use crate::model::entry::ParameterEntry;
use crate::model::table::ParameterTable;
use crate::noise::role::Role;
use std::fmt;

/// A [`ParameterTable`] to print: a line for each parameter and one of totals. Made by [`ParameterTable::summary`], or without the noise of
/// a generation by printing the table itself.
///
/// Bytes of noise are those that are drawn for a pair, or a generation, in the type of the parameter: the size of a cache.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSummary<'a> {
    table: &'a ParameterTable,
    pairs: Option<u32>,
}

impl ParameterTable {
    /// The table to print, with the noise of a generation of `pairs` pairs.
    pub fn summary(&self, pairs: u32) -> ParameterSummary<'_> {
        ParameterSummary { table: self, pairs: Some(pairs) }
    }
}

/// As [`ParameterSummary`], without the noise of a generation.
impl fmt::Display for ParameterTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ParameterSummary { table: self, pairs: None }.fmt(f)
    }
}

impl ParameterSummary<'_> {
    /// One line: what the columns hold, aligned.
    fn line(&self, f: &mut fmt::Formatter<'_>, width: [usize; 2], cells: [&str; 4], noise: [String; 2]) -> fmt::Result {
        let ([path, shape], [number, name, size, role], [pair, generation]) = (width, cells, noise);
        write!(f, "{number:>4}  {name:<path$}  {size:<shape$}  {role:<12}  {pair:>12}")?;
        match self.pairs {
            Some(_) => writeln!(f, "  {generation:>16}"),
            None => writeln!(f),
        }
    }

    /// Bytes of a pair's noise and of a generation's.
    fn bytes(&self, pair: usize) -> [String; 2] {
        [pair.to_string(), (pair as u64 * u64::from(self.pairs.unwrap_or(0))).to_string()]
    }
}

impl fmt::Display for ParameterSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.table.entries();
        let shape = |entry: &ParameterEntry| format!("{:?}", entry.shape);
        let values = |entry: &ParameterEntry| entry.shape.iter().product::<usize>();
        let all = entries.iter().map(values).sum::<usize>();
        let trained = entries.iter().filter(|entry| entry.role != Role::Frozen).map(values).sum::<usize>();
        let total = [format!("{all} values"), format!("{trained} trained")];
        let longest = |cells: &mut dyn Iterator<Item = usize>, least: usize| cells.fold(least, usize::max);
        let width = [
            longest(&mut entries.iter().map(|entry| entry.path.len()), total[0].len().max("parameter".len())),
            longest(&mut entries.iter().map(|entry| shape(entry).len()), total[1].len()),
        ];
        let heading = ["noise B/pair", "noise B/gen"].map(str::to_owned);
        self.line(f, width, ["#", "parameter", "shape", "role"], heading)?;
        for (position, entry) in entries.iter().enumerate() {
            let cells = [&position.to_string(), &entry.path, &shape(entry), &role_name(entry.role)];
            self.line(f, width, cells.map(|cell| &**cell), self.bytes(self.table.noise_bytes(position)))?;
        }
        let bytes = (0..entries.len()).map(|position| self.table.noise_bytes(position)).sum();
        self.line(f, width, ["", &total[0], &total[1], "all"], self.bytes(bytes))
    }
}

fn role_name(role: Role) -> String {
    match role {
        Role::LowRank { rank } => format!("low rank {rank}"),
        Role::Dense => "dense".to_owned(),
        Role::Sparse => "sparse".to_owned(),
        Role::Frozen => "frozen".to_owned(),
    }
}
