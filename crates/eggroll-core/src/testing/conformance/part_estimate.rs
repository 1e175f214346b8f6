//! Estimates by part, for every role of a matrix and every use of it.

use super::{DISTRIBUTIONS, Implementation, implementations, implementations_of, inputs, values};
use crate::noise::role::{ParameterNoise, Role};
use crate::ops::{self, DenseNoise, Input, LowRankNoise, NoiseSource, PairRange, orthonormal_rows};
use crate::rng::key::NoiseKey;
use crate::testing::reference::floats::members::OracleNoise;
use crate::testing::reference::floats::projection::{self, PartRows, estimate_by_part};
use burn::tensor::{DType, Tensor};
use std::hint::black_box;

const SIGMA: f64 = 0.2;

/// Parts, pairs, d_input, d_output, rank.
const CASES: [(usize, usize, usize, usize, usize); 4] =
    [(1, 1, 1, 1, 1), (3, 17, 20, 3, 2), (32, 40, 57, 10, 1), (5, 3, 17, 33, 4)];

/// On an implementation's device.
fn inputs_on(on: &Implementation, given: PartRows, [d_input, d_output]: [usize; 2]) -> Vec<Input> {
    let tensor = |x: &[f64], width: usize| on.tensor(x, [x.len() / width, width]);
    let rows = given.rows.map(|x| Input::Rows(tensor(x, d_input)));
    let transposed = given.transposed.map(|x| Input::Transposed(tensor(x, d_output)));
    let indices = given.indices.map(|indices| {
        let indices: Vec<i32> = indices.iter().map(|index| *index as i32).collect();
        Input::Indices(Tensor::from_ints(indices.as_slice(), &on.device))
    });
    [rows, indices, transposed].into_iter().flatten().collect()
}

#[test]
fn equals_oracle() {
    for distribution in DISTRIBUTIONS {
        let key = NoiseKey::new(5, 1, 2).with_distribution(distribution);
        for (index, (parts, pairs, d_input, d_output, rank)) in CASES.into_iter().enumerate() {
            let shape = [d_input, d_output];
            let (weights, mut x, head) =
                (inputs(parts * pairs, 4), inputs(parts * d_input, 7), inputs(parts * d_output, 9));
            if parts > 1 {
                x[..d_input].fill(0.0); // a row of zeros adds nothing
            }
            let indices: Vec<usize> = (0..parts).map(|part| part * part % d_input).collect();
            let none = PartRows { rows: None, transposed: None, indices: None };
            let uses = [
                PartRows { rows: Some(&x), ..none },
                PartRows { transposed: Some(&head), ..none },
                PartRows { indices: Some(&indices), ..none },
                PartRows { transposed: Some(&head), indices: Some(&indices), ..none },
            ];
            let low_rank = LowRankNoise::new(key, rank, SIGMA);
            let dense = OracleNoise::Dense(DenseNoise::new(key, SIGMA));
            let signs = OracleNoise::LowRank(LowRankNoise { signs: true, ..low_rank });
            let cases = [
                (Role::LowRank { rank }, false, OracleNoise::LowRank(low_rank)),
                (Role::LowRank { rank }, true, signs),
                (Role::Dense, false, dense),
            ];
            for ((role, counts_signs, noise), given) in
                cases.into_iter().flat_map(|case| uses.map(|given| (case, given)))
            {
                let expected = estimate_by_part(&weights, given, noise, parts, shape);
                // Here, because compilers move it out of the loop below, and then form the product for dense noise too: valgrind reports its rank.
                let elements = black_box(role).noise_elements(&shape);
                for on in implementations_of(index, &[1]).into_iter().filter(|on| !on.portable) {
                    let held = ops::noise(key, PairRange::new(0, pairs as u32), elements, &on.device, DType::F32);
                    for source in [NoiseSource::Drawn, NoiseSource::Cached { noise: held, first_pair: 0 }] {
                        let noise = ParameterNoise { role, key, sigma: SIGMA, source, counts_signs };
                        let weights = on.tensor(&weights, [parts, pairs]);
                        let found =
                            noise.on_rows(pairs, inputs_on(&on, given, shape), &shape, DType::F32).estimate(weights);
                        let off = on.distance(&values(found), &expected, parts * pairs * rank);
                        assert!(off < 1.0, "{}, {role:?}, {parts} parts, {pairs} pairs: {off}", on.name);
                    }
                }
            }
        }
    }
}

/// Of rank 1 the power of a part is the square of what its rows are moved by, relative to its mean over noise.
#[test]
fn power_is_the_squared_move() {
    let (parts, rows, pairs, shape) = (3, 2, 17, [20, 7]);
    let (mut x, head) = (inputs(parts * rows * shape[0], 7), inputs(parts * rows * shape[1], 9));
    x[..rows * shape[0]].fill(0.0); // a part that nothing moves
    let indices: Vec<usize> = (0..parts * rows).map(|row| row * row % shape[0]).collect();
    let of_lookup: Vec<f64> =
        indices.iter().flat_map(|row| (0..shape[0]).map(move |i| f64::from(u8::from(i == *row)))).collect();
    let none = PartRows { rows: None, transposed: None, indices: None };
    let key = NoiseKey::new(5, 1, 2);
    for counts_signs in [false, true] {
        let low_rank = LowRankNoise { signs: counts_signs, ..LowRankNoise::new(key, 1, SIGMA) };
        let noise = OracleNoise::LowRank(low_rank);
        let power = |x, noise, shape| projection::power(x, parts, noise, pairs, SIGMA, shape);
        let cases = [
            (PartRows { rows: Some(&x), ..none }, power(&x, noise, shape)),
            (PartRows { transposed: Some(&head), ..none }, power(&head, noise.transposed(), [shape[1], shape[0]])),
            (PartRows { indices: Some(&indices), ..none }, power(&of_lookup, noise, shape)),
        ];
        for (given, expected) in cases {
            for on in implementations().into_iter().filter(|on| !on.portable) {
                let role = Role::LowRank { rank: 1 };
                let noise = ParameterNoise { role, key, sigma: SIGMA, source: NoiseSource::Drawn, counts_signs };
                let found = noise
                    .on_rows(pairs as usize, inputs_on(&on, given, shape), &shape, DType::F32)
                    .power(parts)
                    .expect("low-rank noise");
                let off = on.distance(&values(found), &expected, shape[0]);
                assert!(off < 1.0, "{}: {off}", on.name);
            }
        }
    }
    let noise =
        ParameterNoise { role: Role::Dense, key, sigma: SIGMA, source: NoiseSource::Drawn, counts_signs: false };
    let on = &implementations()[0];
    assert!(
        noise
            .on_rows(17, inputs_on(on, PartRows { rows: Some(&x), ..none }, shape), &shape, DType::F32)
            .power(parts)
            .is_none()
    );
}

/// Parts in another order than their rows are another estimate.
#[test]
fn canary_shuffled_parts_fail() {
    let on = &implementations()[0];
    let (key, shape) = (NoiseKey::new(5, 1, 2), [20, 3]);
    let (weights, x) = (inputs(3 * 17, 4), inputs(3 * 20, 7));
    let given = PartRows { rows: Some(&x), transposed: None, indices: None };
    let noise = OracleNoise::LowRank(LowRankNoise::new(key, 1, SIGMA));
    let expected = estimate_by_part(&weights, given, noise, 3, shape);
    let role = Role::LowRank { rank: 1 };
    let noise = ParameterNoise { role, key, sigma: SIGMA, source: NoiseSource::Drawn, counts_signs: false };
    let shuffled: Vec<f64> = [&weights[17..], &weights[..17]].concat();
    let found =
        noise.on_rows(17, inputs_on(on, given, shape), &shape, DType::F32).estimate(on.tensor(&shuffled, [3, 17]));
    assert!(on.distance(&values(found), &expected, 3 * 17) > 10.0);
}

/// Sparse noise has no oracle of matrices: with equal weights for all parts on one row it is the plain estimate, projected onto that row.
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
        let uses = [Input::Rows(x.repeat_dim(0, 3))];
        let found = values(noise.on_rows(pairs, uses.to_vec(), &shape, DType::F32).estimate(three / 3.0));
        let off = on.distance(&found, &expected, pairs * shape[0]);
        assert!(off < 1.0, "{}: {off}", on.name);
    }
}

/// The span of several rows: what a basis gives is the projection of the estimate, and rows that others span add nothing.
#[test]
fn a_basis_spans_what_the_rows_span() {
    let (parts, rows, width, columns) = (3, 4, 9, 5);
    let (gradient, mut x) = (inputs(width * columns, 3), inputs(parts * rows * width, 7));
    x.copy_within(0..width, width); // twice the same row
    x[rows * width..(rows + 1) * width].fill(0.0);
    for on in implementations().into_iter().filter(|on| !on.portable) {
        let basis = orthonormal_rows(on.tensor(&x, [parts, rows, width]));
        for part in 0..parts {
            let own = &x[part * rows * width..(part + 1) * rows * width];
            let expected = projection::onto_rows(&gradient, own, width, columns);
            let q = basis.clone().slice_dim(0, part..part + 1).reshape([rows, width]);
            let projected = q.clone().transpose().matmul(q.matmul(on.tensor(&gradient, [width, columns])));
            let off = on.distance(&values(projected), &expected, width);
            assert!(off < 1.0, "{}, part {part}: {off}", on.name);
        }
    }
}

#[test]
#[should_panic(expected = "weights [2, 3] do not fit an input of 4 rows")]
fn refuses_other_rows() {
    let on = &implementations()[0];
    let (role, key) = (Role::LowRank { rank: 1 }, NoiseKey::new(0, 0, 0));
    let noise = ParameterNoise { role, key, sigma: 1.0, source: NoiseSource::Drawn, counts_signs: false };
    let (weights, x) = (Tensor::zeros([2, 3], &on.device), Tensor::zeros([4, 5], &on.device));
    noise.on_rows(3, vec![Input::Rows(x)], &[5, 6], DType::F32).estimate(weights);
}
