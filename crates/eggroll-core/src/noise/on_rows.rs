//! Noise on the rows that parts gave a weight: estimates by part, and how far the noise moves each part.

use crate::noise::matrix::MatrixView;
use crate::noise::role::{ParameterNoise, Role};
use crate::ops::part_estimate::{self, LowRankRows, apart_from, spread};
use crate::ops::{Input, InputRows, LinearMembers, LowRankNoise};
use burn::tensor::{DType, Tensor};

/// The noise of pairs on the rows that every part gave a weight, by [`ParameterNoise::on_rows`].
#[derive(Clone, Debug)]
pub struct NoiseOnRows {
    noise: ParameterNoise,
    uses: Vec<Input>,
    /// The factors for every use, if the noise is of low rank.
    low_rank: Vec<LowRankRows>,
    matrix: [usize; 2],
    pairs: usize,
    dtype: DType,
}

impl ParameterNoise {
    /// The noise of `pairs` pairs on the rows that parts gave a weight of this shape, in the type `dtype`: for [estimates by
    /// part](NoiseOnRows::estimate).
    ///
    /// # Panics
    ///
    /// Panics for a frozen parameter, a parameter of fewer than two axes, and uses that [have no
    /// projection](NoiseOnRows::projects).
    #[track_caller]
    pub fn on_rows(self, pairs: usize, uses: Vec<Input>, shape: &[usize], dtype: DType) -> NoiseOnRows {
        let view = MatrixView::of(shape).filter(|_| NoiseOnRows::projects(&uses));
        let Some(view) = view else {
            panic!("estimate by part: a parameter of shape {shape:?} with {} uses has no projection", uses.len());
        };
        let matrix = [view.d_input, view.d_output];
        let low_rank = match self.role {
            Role::Frozen => panic!("a frozen parameter of shape {matrix:?} has neither noise nor an estimate"),
            Role::LowRank { rank } => {
                let noise = LowRankNoise { signs: self.counts_signs, ..self.low_rank(rank) };
                let of = |input| LowRankRows::new(input, noise, &self.source, matrix, pairs, dtype);
                uses.iter().map(of).collect()
            }
            Role::Dense | Role::Sparse => Vec::new(),
        };
        NoiseOnRows { noise: self, uses, low_rank, matrix, pairs, dtype }
    }
}

impl NoiseOnRows {
    /// Whether these uses of a weight have a projection: one, or a lookup and an output layer that is tied to it.
    pub fn projects(uses: &[Input]) -> bool {
        use Input::{Indices, Rows, Transposed};
        matches!(
            uses,
            [Rows(_) | Indices(_) | Transposed(_)] | [Indices(_), Transposed(_)] | [Transposed(_), Indices(_)]
        )
    }

    /// `Σ_t P_t(Σ_q w_tq·E_q)` over rows and pairs from 0 on, flat: the [`estimate`](ParameterNoise::estimate) of every row from its own weights,
    /// projected onto that row's input. The projection is `x_tᵀ·x_t/|x_t|²·E` for a row `x_t` of `x·W`, `E·x_tᵀ·x_t/|x_t|²` for a row of `x·Wᵀ`,
    /// and for a lookup the row that is looked up. A weight that is looked up and transposed has both.
    ///
    /// A part's score depends on the noise only through these products. With normal noise the mean therefore equals `estimate` with the weights
    /// `Σ_t w_tq`, and the variance is smaller.
    ///
    /// `weights` is `[rows, pairs]`, in float32.
    ///
    /// # Panics
    ///
    /// Panics if a use has another number of rows than the weights, and as [`ParameterNoise::estimate`].
    #[track_caller]
    pub fn estimate(&self, weights: Tensor<2>) -> Tensor<1> {
        let products = |at: usize| self.products(&weights, at);
        let gradient = match self.uses.as_slice() {
            [input] => spread(products(0), input, self.matrix),
            [a, b] => {
                let (lookup, head) = if let Input::Indices(_) = a { (0, 1) } else { (1, 0) };
                let Input::Transposed(x) = [a, b][head] else { unreachable!("on_rows() has checked it") };
                // The head's projection already contains the component of the row along x.
                let row = apart_from(products(lookup), x.clone());
                spread(products(head), &self.uses[head], self.matrix) + spread(row, &self.uses[lookup], self.matrix)
            }
            _ => unreachable!("on_rows() has checked it"),
        };
        gradient.cast(self.dtype).reshape([self.matrix[0] * self.matrix[1]])
    }

    /// How far each pair moves the weight's outputs of every part. This is the square of the change, relative to its mean over noise and
    /// averaged over the uses. `[parts, pairs]`, in float32. `None` for all noise but low-rank noise, as it is then nearly the same for
    /// all pairs.
    ///
    /// The change of a row `x_t` of `x·W` is `σ/√r·Σ_k (x_t·b_k)·a_k`; at rank 1 its square is as uneven as the square of one normal number.
    /// Products of different columns, whose mean is 0, are left out. All parts have the same number of rows in a use.
    ///
    /// # Panics
    ///
    /// Panics if the rows of a use are not a multiple of the parts.
    #[track_caller]
    pub fn power(&self, parts: usize) -> Option<Tensor<2>> {
        let of = |(rows, input): (&LowRankRows, &Input)| {
            let count = input.rows();
            assert!(count > 0 && count.is_multiple_of(parts), "power: an input of {count} rows for {parts} parts");
            rows.power(input, parts)
        };
        let powers = self.low_rank.iter().zip(&self.uses).map(of);
        let sum = powers.reduce(|sum, next| sum + next)?;
        Some(if self.uses.len() == 1 { sum } else { sum / self.uses.len() as f64 })
    }

    /// `Σ_q w_tq·x_t·E_q` of every row of a use, in float32.
    #[track_caller]
    fn products(&self, weights: &Tensor<2>, at: usize) -> Tensor<2> {
        let input = &self.uses[at];
        part_estimate::check(weights, input);
        if let Some(rows) = self.low_rank.get(at) {
            return rows.products(weights);
        }
        let (parts, [d_input, d_output]) = (input.rows(), self.matrix);
        let share = match self.noise.role {
            Role::Sparse => Role::Sparse.noise_elements(&self.matrix) as f64 / (d_input * d_output) as f64,
            _ => 1.0,
        };
        let zeros = Tensor::<2>::zeros(self.matrix, (&weights.device(), self.dtype));
        let width = if let Input::Transposed(_) = input { d_input } else { d_output };
        let each = self.noise.role.noise_elements(&self.matrix).max(2 * parts * width);
        // The rows under the noise of the first member of every pair.
        let sums = part_estimate::in_runs(self.pairs, each, |run| {
            let (first, count) = (run.first as usize, run.count as usize);
            let members = LinearMembers { pairs: run, input: InputRows::Shared };
            let noise = self.noise.clone();
            let y = match input {
                Input::Rows(x) => noise.linear(x.clone().cast(self.dtype), zeros.clone(), None, members),
                Input::Transposed(x) => noise.linear_transposed(x.clone().cast(self.dtype), zeros.clone(), members),
                Input::Indices(indices) => noise.embedding(indices.clone(), zeros.clone(), members),
                Input::Other => unreachable!("on_rows() has checked it"),
            };
            let y = y.cast(DType::F32).reshape([count, 2, parts, width]).slice_dim(1, 0..1);
            let weights = weights.clone().slice_dim(1, first..first + count).transpose(); // [count, parts]
            (y.reshape([count, parts, width]) * weights.unsqueeze_dim(2)).sum_dim(0).reshape([parts, width])
        });
        sums.mul_scalar(share)
    }
}
