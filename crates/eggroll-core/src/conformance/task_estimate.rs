//! Estimates by task, for every role of a matrix.

use super::oracle::{self, Noise};
use super::{DISTRIBUTIONS, implementations, inputs, row_projection, values};
use crate::key::NoiseKey;
use crate::ops::{self, DenseNoise, LowRankNoise, NoiseSource, PairRange};
use crate::role::{ParameterNoise, Role};
use burn::tensor::{DType, Tensor};

const SIGMA: f64 = 0.2;

/// Tasks, pairs, d_input, d_output, rank.
const CASES: [(usize, usize, usize, usize, usize); 4] =
    [(1, 1, 1, 1, 1), (3, 17, 20, 3, 2), (32, 40, 57, 10, 1), (5, 3, 17, 33, 4)];

/// The estimate of every task as it would be alone, projected onto its row; summed up.
fn expected(weights: &[f64], x: &[f64], noise: Noise, tasks: usize, shape: [usize; 2]) -> Vec<f64> {
    let mut sum = vec![0.0; shape[0] * shape[1]];
    for (weights, x) in weights.chunks(weights.len() / tasks).zip(x.chunks(shape[0])) {
        let alone = oracle::estimate(weights, noise, 0, shape);
        let projected = row_projection::expected(&alone, x, shape[0], shape[1]);
        sum.iter_mut().zip(projected).for_each(|(sum, value)| *sum += value);
    }
    sum
}

#[test]
fn equals_oracle() {
    for distribution in DISTRIBUTIONS {
        let key = NoiseKey::new(5, 1, 2).with_distribution(distribution);
        for (tasks, pairs, d_input, d_output, rank) in CASES {
            let shape = [d_input, d_output];
            let (weights, mut x) = (inputs(tasks * pairs, 4), inputs(tasks * d_input, 7));
            if tasks > 1 {
                x[..d_input].fill(0.0); // a row of zeros adds nothing
            }
            let low_rank = LowRankNoise::new(key, rank, SIGMA);
            let dense = Noise::Dense(DenseNoise::new(key, SIGMA));
            let signs = Noise::LowRank(LowRankNoise { signs: true, ..low_rank });
            let cases = [
                (Role::LowRank { rank }, false, Noise::LowRank(low_rank)),
                (Role::LowRank { rank }, true, signs),
                (Role::Dense, false, dense),
            ];
            for (role, counts_signs, noise) in cases {
                let expected = expected(&weights, &x, noise, tasks, shape);
                for on in implementations().into_iter().filter(|on| !on.portable) {
                    let elements = role.noise_elements(&shape);
                    let held = ops::noise(key, PairRange::new(0, pairs as u32), elements, &on.device, DType::F32);
                    for source in [NoiseSource::Drawn, NoiseSource::Cached { noise: held, first_pair: 0 }] {
                        let noise = ParameterNoise { role, key, sigma: SIGMA, source, counts_signs };
                        let tensors = (on.tensor(&weights, [tasks, pairs]), on.tensor(&x, [tasks, d_input]));
                        let found = values(noise.task_estimate(tensors.0, tensors.1, &shape, DType::F32));
                        let off = on.distance(&found, &expected, tasks * pairs * rank);
                        assert!(off < 1.0, "{}, {role:?}, {tasks} tasks, {pairs} pairs: {off}", on.name);
                    }
                }
            }
        }
    }
}

/// Sparse noise has no oracle of matrices: with equal weights for all tasks on one row it is the plain estimate, projected onto that row.
#[test]
fn sparse_noise_equals_the_projected_estimate() {
    let (pairs, shape) = (50, [40, 30]);
    let (weights, x) = (inputs(pairs, 4), inputs(shape[0], 7));
    for on in implementations().into_iter().filter(|on| !on.portable) {
        let key = NoiseKey::new(5, 1, 2);
        let noise =
            ParameterNoise { role: Role::Sparse, key, sigma: SIGMA, source: NoiseSource::Drawn, counts_signs: false };
        let x = on.tensor(&x, [1, shape[0]]);
        let weights = on.tensor(&weights, [pairs]);
        let plain = noise.clone().estimate(weights.clone(), &shape, DType::F32).reshape(shape);
        let projected = values(ops::row_projection(plain, x.clone()));
        let expected: Vec<f64> = projected.into_iter().map(f64::from).collect();
        let three = Tensor::cat(
            vec![weights.clone().unsqueeze::<2>(), weights.unsqueeze() * 2.0, Tensor::zeros([1, pairs], &on.device)],
            0,
        );
        let found = values(noise.task_estimate(three / 3.0, x.repeat_dim(0, 3), &shape, DType::F32));
        let off = on.distance(&found, &expected, pairs * shape[0]);
        assert!(off < 1.0, "{}: {off}", on.name);
    }
}

#[test]
#[should_panic(expected = "weights [2, 3] of tasks do not fit one input row for each task, [4, 5]")]
fn refuses_other_rows() {
    let on = &implementations()[0];
    let noise = LowRankNoise::new(NoiseKey::new(0, 0, 0), 1, 1.0);
    let (weights, x) = (Tensor::zeros([2, 3], &on.device), Tensor::zeros([4, 5], &on.device));
    ops::low_rank_task_estimate(weights, x, noise, &NoiseSource::Drawn, 0, 6, DType::F32);
}
