//! Mean and variance of observations.

use serde::{Deserialize, Serialize};

/// The least variance that is divided by.
const EPSILON: f64 = 1e-8;
/// Bounds of normalised observations.
const BOUND: f32 = 10.0;

/// Count, sum and sum of squares of rows, value by value: merged in a fixed order they are the same for all chunks and threads.
///
/// # Example
///
/// ```
/// use eggroll_train::host_rollout::Moments;
///
/// let mut moments = Moments::new(2);
/// moments.add(&[1.0, 5.0]);
/// moments.add(&[3.0, 5.0]);
/// assert_eq!((moments.count(), moments.mean(0), moments.variance(0), moments.variance(1)), (2, 2.0, 1.0, 0.0));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    /// Of no rows yet.
    pub fn new(size: usize) -> Self {
        Self { count: 0, sums: vec![0.0; size], squares: vec![0.0; size] }
    }

    /// Values of a row.
    pub fn size(&self) -> usize {
        self.sums.len()
    }

    /// Rows so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes a row.
    ///
    /// # Panics
    ///
    /// Panics if it has another number of values.
    #[track_caller]
    pub fn add(&mut self, row: &[f32]) {
        assert!(row.len() == self.size(), "a row of {} values for moments of {}", row.len(), self.size());
        self.count += 1;
        for ((sum, square), value) in self.sums.iter_mut().zip(&mut self.squares).zip(row) {
            let value = f64::from(*value);
            *sum += value;
            *square += value * value;
        }
    }

    /// Takes the rows of others.
    ///
    /// # Panics
    ///
    /// Panics if they are of another number of values.
    #[track_caller]
    pub fn merge(&mut self, others: &Self) {
        assert!(others.size() == self.size(), "moments of {} values for moments of {}", others.size(), self.size());
        self.count += others.count;
        self.sums.iter_mut().zip(&others.sums).for_each(|(sum, other)| *sum += other);
        self.squares.iter_mut().zip(&others.squares).for_each(|(square, other)| *square += other);
    }

    /// Mean of a value; 0 without rows.
    pub fn mean(&self, index: usize) -> f64 {
        self.sums[index] / self.count.max(1) as f64
    }

    /// Variance of a value, 0 or more.
    pub fn variance(&self, index: usize) -> f64 {
        let mean = self.mean(index);
        (self.squares[index] / self.count.max(1) as f64 - mean * mean).max(0.0)
    }

    /// What a row is normalised by; `None` before there is a row.
    pub(super) fn scale(&self) -> Option<Scale> {
        let each = |index| {
            let deviation = (self.variance(index) + EPSILON).sqrt();
            (self.mean(index) as f32, (1.0 / deviation) as f32)
        };
        (self.count > 0).then(|| Scale((0..self.size()).map(each).collect()))
    }
}

/// Mean and inverse deviation of each value.
pub(super) struct Scale(Vec<(f32, f32)>);

impl Scale {
    /// `(x − mean)/deviation`, within bounds.
    pub fn apply(&self, row: &mut [f32]) {
        for (value, (mean, inverse)) in row.iter_mut().zip(&self.0) {
            *value = ((*value - mean) * inverse).clamp(-BOUND, BOUND);
        }
    }
}
