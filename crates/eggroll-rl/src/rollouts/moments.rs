//! Sums over observations.

/// Sums over the observations of a generation: of their distances `d` to a center, and of `d²`. The center is near the observations, for their
/// spread to be left of the sums where they are far from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: f64,
    center: Vec<f32>,
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// Observations that are in none of these.
    pub(super) left_out: u64,
}

impl Moments {
    /// Of no observations yet, whose distances are those to `center`.
    pub(super) fn around(center: &[f32]) -> Self {
        let zeros = vec![0.0; center.len()];
        Self { count: 0.0, center: center.to_vec(), sums: zeros.clone(), squares: zeros, left_out: 0 }
    }

    /// Values of an observation; 0 without sums.
    pub(super) fn size(&self) -> usize {
        self.center.len()
    }

    /// Adds the sums of one environment that has shown `count` observations: `[sums of d, sums of d², left out]`, or nothing.
    pub(super) fn add(&mut self, count: f64, row: &[f32]) {
        let (left_out, row) = row.split_last().map_or((0.0, row), |(left_out, row)| (*left_out, row));
        let (sums, squares) = row.split_at(row.len() / 2);
        self.count += count - f64::from(left_out);
        self.left_out += left_out as u64;
        for (all, part) in [(&mut self.sums, sums), (&mut self.squares, squares)] {
            all.iter_mut().zip(part).for_each(|(all, part)| *all += f64::from(*part));
        }
    }

    /// The mean of every value, and the sum of its squared distances to that.
    pub(super) fn spreads(&self) -> impl Iterator<Item = (f64, f64)> {
        let sums = self.center.iter().zip(self.sums.iter().zip(&self.squares));
        sums.map(|(center, (sum, squares))| {
            let shift = sum / self.count;
            (f64::from(*center) + shift, (squares - sum * shift).max(0.0))
        })
    }
}
