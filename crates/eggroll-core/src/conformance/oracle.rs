//! Explicit perturbed weights and sums, in f64.

use crate::ops::{DenseNoise, InputRows, LinearMembers, LowRankNoise};
use crate::reference::{dense_noise, low_rank_noise, matmul};
use crate::rng::NoiseDistribution;

/// Noise of a matrix, as the oracle sees it: what is added for sign +1.
#[derive(Clone, Copy)]
pub(super) enum Noise {
    LowRank(LowRankNoise),
    Dense(DenseNoise),
}

impl Noise {
    pub(super) fn distribution(&self) -> NoiseDistribution {
        match self {
            Self::LowRank(noise) => noise.key.distribution(),
            Self::Dense(noise) => noise.key.distribution(),
        }
    }

    pub(super) fn matrix(&self, pair: u32, shape: [usize; 2]) -> Vec<f64> {
        let (drawn, scale) = match self {
            Self::LowRank(noise) => (low_rank_noise(noise.key, pair, noise.rank, shape), noise.scale),
            Self::Dense(noise) => (dense_noise(noise.key, pair, shape[0] * shape[1]), noise.scale),
        };
        drawn.iter().map(|value| f64::from(scale) * value).collect()
    }
}

pub(super) fn sign(member: usize) -> f64 {
    if member.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// `x_m·(W + s·noise) + bias + s·bias noise` for every member.
pub(super) fn linear(
    x: &[f64],
    w: &[f64],
    bias: Option<(&[f64], Option<DenseNoise>)>,
    noise: Noise,
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

/// `Σ_q w_q·noise_q`.
pub(super) fn estimate(weights: &[f64], noise: Noise, first: u32, shape: [usize; 2]) -> Vec<f64> {
    let mut sum = vec![0.0; shape[0] * shape[1]];
    for (q, weight) in weights.iter().enumerate() {
        let noise = noise.matrix(first + q as u32, shape);
        sum.iter_mut().zip(noise).for_each(|(sum, e)| *sum += weight * e);
    }
    sum
}
