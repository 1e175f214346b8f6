//! Estimates by part: each projected onto the rows that the part gave the weight.

use super::members::{OracleNoise, estimate, transpose};
use crate::testing::reference::matmul;

/// The gradient projected onto the span of the rows, by Gram and Schmidt, twice for each row.
pub(crate) fn onto_rows(gradient: &[f64], x: &[f64], d_input: usize, d_output: usize) -> Vec<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for row in x.chunks(d_input) {
        let mut v = row.to_vec();
        for _ in 0..2 {
            for q in &basis {
                let overlap = dot(q, &v);
                v.iter_mut().zip(q).for_each(|(v, q)| *v -= overlap * q);
            }
        }
        let left = dot(&v, &v);
        if left > 1e-8 * dot(row, row) {
            basis.push(v.iter().map(|v| v / left.sqrt()).collect());
        }
    }
    let mut projected = vec![0.0; gradient.len()];
    for q in &basis {
        for o in 0..d_output {
            let inner: f64 = (0..d_input).map(|i| q[i] * gradient[i * d_output + o]).sum();
            (0..d_input).for_each(|i| projected[i * d_output + o] += q[i] * inner);
        }
    }
    projected
}

/// The inputs of a weight by part: a row of `x·W`, a row of `x·Wᵀ`, an index.
#[derive(Clone, Copy)]
pub(crate) struct PartRows<'a> {
    pub rows: Option<&'a [f64]>,
    pub transposed: Option<&'a [f64]>,
    pub indices: Option<&'a [usize]>,
}

impl PartRows<'_> {
    /// The estimate of a part alone, projected onto its inputs of the weight: one subspace after the other, each counted once.
    fn projected(&self, alone: &[f64], part: usize, shape: [usize; 2]) -> Vec<f64> {
        let [d_input, d_output] = shape;
        let mut rest = alone.to_vec();
        let mut sum = vec![0.0; alone.len()];
        let mut take = |projection: &dyn Fn(&[f64]) -> Vec<f64>| {
            let taken = projection(&rest);
            rest.iter_mut().zip(&taken).for_each(|(rest, taken)| *rest -= taken);
            sum.iter_mut().zip(taken).for_each(|(sum, taken)| *sum += taken);
        };
        if let Some(x) = self.rows {
            let x = &x[part * d_input..(part + 1) * d_input];
            take(&|rest| onto_rows(rest, x, d_input, d_output));
        }
        if let Some(indices) = self.indices {
            let of_row = |i: usize| i / d_output == indices[part];
            take(&|rest| rest.iter().enumerate().map(|(i, value)| if of_row(i) { *value } else { 0.0 }).collect());
        }
        if let Some(x) = self.transposed {
            let x = &x[part * d_output..(part + 1) * d_output];
            take(&|rest| transpose(&onto_rows(&transpose(rest, shape), x, d_output, d_input), [d_output, d_input]));
        }
        sum
    }
}

/// The sum over parts of each part's own estimate, projected. Weights are `[parts, pairs]`.
pub(crate) fn estimate_by_part(
    weights: &[f64],
    given: PartRows,
    noise: OracleNoise,
    parts: usize,
    shape: [usize; 2],
) -> Vec<f64> {
    let mut sum = vec![0.0; shape[0] * shape[1]];
    for (part, weights) in weights.chunks(weights.len() / parts).enumerate() {
        let projected = given.projected(&estimate(weights, noise, 0, shape), part, shape);
        sum.iter_mut().zip(projected).for_each(|(sum, value)| *sum += value);
    }
    sum
}

/// `[parts, pairs]`: how much a pair's noise moves the products `x·E` of a part, `Σ (x·E)² ÷ (σ²·‖x‖²·columns)`; 0 where nothing is moved.
/// Rows of `x` are `[parts, rows, d_input]`.
pub(crate) fn power(
    x: &[f64],
    parts: usize,
    noise: OracleNoise,
    pairs: u32,
    sigma: f64,
    shape: [usize; 2],
) -> Vec<f64> {
    let [d_input, d_output] = shape;
    let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let of = |(part, pair): (&[f64], u32)| {
        let moved = squares(&matmul(part, &noise.matrix(pair, shape), d_input, d_output));
        let size = sigma * sigma * squares(part) * d_output as f64;
        if size == 0.0 { 0.0 } else { moved / size }
    };
    x.chunks(x.len() / parts).flat_map(|part| (0..pairs).map(move |pair| (part, pair))).map(of).collect()
}
