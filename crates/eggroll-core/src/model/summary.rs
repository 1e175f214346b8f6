//! The parameter table as text.

use crate::model::entry::ParameterEntry;
use crate::model::table::ParameterTable;
use crate::noise::role::Role;
use std::fmt;

/// A [`ParameterTable`] to print: a line for each parameter and one of totals. Made by [`ParameterTable::summary`]; printing the table
/// itself leaves out the noise of a generation.
///
/// Bytes of noise are counted for a pair, or for a generation, in the type of the parameter: the size of a cache.
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
    /// Heading, parameters and totals, as texts.
    fn rows(&self) -> Vec<[String; 6]> {
        let entries = self.table.entries();
        let values = |entry: &ParameterEntry| entry.shape.iter().product::<usize>();
        let all: usize = entries.iter().map(values).sum();
        let trained: usize = entries.iter().filter(|entry| entry.role != Role::Frozen).map(values).sum();
        let bytes: u64 = (0..entries.len()).map(|position| self.table.noise_bytes(position)).sum();
        let of_generation = |pair: u64| (pair * u64::from(self.pairs.unwrap_or(0))).to_string();
        let of_entry = |(position, entry): (usize, &ParameterEntry)| {
            let (shape, pair) = (format!("{:?}", entry.shape), self.table.noise_bytes(position));
            let role = role_name(entry.role);
            [position.to_string(), entry.path.clone(), shape, role, pair.to_string(), of_generation(pair)]
        };
        let heading = ["#", "parameter", "shape", "role", "bytes/pair", "bytes/gen"].map(str::to_owned);
        let values = format!("{all} values, {trained} trained");
        let totals = [String::new(), values, String::new(), "all".to_owned(), bytes.to_string(), of_generation(bytes)];
        [heading].into_iter().chain(entries.iter().enumerate().map(of_entry)).chain([totals]).collect()
    }
}

/// Columns as wide as their contents: numbers to the right, text to the left.
impl fmt::Display for ParameterSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let [w0, w1, w2, w3, w4, w5] = std::array::from_fn(width);
        for [number, path, shape, role, pair, generation] in &rows {
            write!(f, "{number:>w0$}  {path:<w1$}  {shape:<w2$}  {role:<w3$}  {pair:>w4$}")?;
            match self.pairs {
                Some(_) => writeln!(f, "  {generation:>w5$}"),
                None => writeln!(f),
            }?;
        }
        Ok(())
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
