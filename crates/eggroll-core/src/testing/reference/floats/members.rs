//! Perturbed weights written out, and sums over pairs.

use crate::ops::{DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise};
use crate::rng::NoiseDistribution;
use crate::testing::reference::{dense_noise, low_rank_noise, low_rank_signs, matmul};

/// Noise of a matrix for the oracle, as added for sign +1.
#[derive(Clone, Copy)]
pub(crate) enum OracleNoise {
    LowRank(LowRankNoise),
    Dense(DenseNoise),
}

impl OracleNoise {
    pub(crate) fn distribution(&self) -> NoiseDistribution {
        match self {
            Self::LowRank(noise) => noise.key.distribution(),
            Self::Dense(noise) => noise.key.distribution(),
        }
    }

    /// The noise of an operation's matrix, which may be the transpose of the parameter.
    pub(crate) fn matrix(&self, pair: u32, shape: [usize; 2]) -> Vec<f64> {
        let transposed = self.of_matrix().is_transposed();
        let of_parameter = if transposed { [shape[1], shape[0]] } else { shape };
        let (drawn, scale) = match self {
            Self::LowRank(noise) => {
                let draw = if noise.signs { low_rank_signs } else { low_rank_noise };
                (draw(noise.key, pair, noise.rank, of_parameter), noise.scale)
            }
            Self::Dense(noise) => (dense_noise(noise.key, pair, shape[0] * shape[1]), noise.scale),
        };
        let drawn = if transposed { transpose(&drawn, of_parameter) } else { drawn };
        drawn.iter().map(|value| f64::from(scale) * value).collect()
    }

    pub(crate) fn of_matrix(&self) -> MatrixNoise {
        match *self {
            Self::LowRank(noise) => MatrixNoise::LowRank(noise),
            Self::Dense(noise) => MatrixNoise::Dense(noise),
        }
    }

    /// The same noise for an operation on the transpose.
    pub(crate) fn transposed(&self) -> Self {
        match *self {
            Self::LowRank(noise) => Self::LowRank(noise.transposed()),
            Self::Dense(noise) => Self::Dense(noise.transposed()),
        }
    }
}

pub(crate) fn sign(member: usize) -> f64 {
    if member.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// `x_m·(W + s·noise) + bias + s·bias noise` for every member.
pub(crate) fn linear(
    x: &[f64],
    w: &[f64],
    bias: Option<(&[f64], Option<DenseNoise>)>,
    noise: OracleNoise,
    members: LinearMembers,
    shape: [usize; 2],
) -> Vec<f64> {
    let [d_input, d_output] = shape;
    let count = members.pairs.members();
    let member = |m: usize| {
        let pair = members.pairs.first + (m / 2) as u32;
        let noise = noise.matrix(pair, shape);
        let perturbed: Vec<f64> = w.iter().zip(&noise).map(|(w, e)| w + sign(m) * e).collect();
        let rows = match members.input {
            InputRows::Shared => x,
            InputRows::PerMember => &x[m * x.len() / count..(m + 1) * x.len() / count],
        };
        let mut y = matmul(rows, &perturbed, d_input, d_output);
        if let Some((bias, noise)) = bias {
            let drawn = noise.map(|noise| (noise.scale, dense_noise(noise.key, pair, d_output)));
            for (i, y) in y.iter_mut().enumerate() {
                let o = i % d_output;
                *y += bias[o] + drawn.as_ref().map_or(0.0, |(scale, e)| sign(m) * f64::from(*scale) * e[o]);
            }
        }
        y
    };
    (0..count).flat_map(member).collect()
}

/// Rows of `W + s·noise` for every member.
pub(crate) fn embedding(
    indices: &[usize],
    w: &[f64],
    noise: OracleNoise,
    members: LinearMembers,
    shape: [usize; 2],
) -> Vec<f64> {
    let count = members.pairs.members();
    let member = |m: usize| {
        let drawn = noise.matrix(members.pairs.first + (m / 2) as u32, shape);
        let indices = match members.input {
            InputRows::Shared => indices,
            InputRows::PerMember => &indices[m * indices.len() / count..(m + 1) * indices.len() / count],
        };
        let element = |index: &usize, c: usize| w[index * shape[1] + c] + sign(m) * drawn[index * shape[1] + c];
        indices.iter().flat_map(|index| (0..shape[1]).map(move |c| element(index, c))).collect::<Vec<_>>()
    };
    (0..count).flat_map(member).collect()
}

/// The transpose of a row-major matrix.
pub(crate) fn transpose(matrix: &[f64], [rows, columns]: [usize; 2]) -> Vec<f64> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| (r, c))).map(|(r, c)| matrix[r * columns + c]).collect()
}

/// `Σ_q w_q·noise_q`.
pub(crate) fn estimate(weights: &[f64], noise: OracleNoise, first: u32, shape: [usize; 2]) -> Vec<f64> {
    let mut sum = vec![0.0; shape[0] * shape[1]];
    for (q, weight) in weights.iter().enumerate() {
        let noise = noise.matrix(first + q as u32, shape);
        sum.iter_mut().zip(noise).for_each(|(sum, e)| *sum += weight * e);
    }
    sum
}
