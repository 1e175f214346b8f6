//! Sums over observations.

/// Sums over the observations of a generation: of their distances `d` to the mean before it, and of `d²`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: f64,
    pub(super) sums: Vec<f64>,
    pub(super) squares: Vec<f64>,
    /// Observations that are in none of these.
    pub(super) left_out: u64,
}

impl Moments {
    /// Adds the sums of one environment that has shown `count` observations: `[sums of d, sums of d², left out]`, or nothing.
    pub(super) fn add(&mut self, count: f64, row: &[f32]) {
        let (left_out, row) = row.split_last().map_or((0.0, row), |(left_out, row)| (*left_out, row));
        let (sums, squares) = row.split_at(row.len() / 2);
        self.count += count - f64::from(left_out);
        self.left_out += left_out as u64;
        for (all, part) in [(&mut self.sums, sums), (&mut self.squares, squares)] {
            all.resize(part.len(), 0.0);
            all.iter_mut().zip(part).for_each(|(all, part)| *all += f64::from(*part));
        }
    }
}
