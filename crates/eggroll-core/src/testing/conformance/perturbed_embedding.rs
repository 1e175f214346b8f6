//! Perturbed embedding: rows of perturbed matrices.

use super::{DISTRIBUTIONS, Implementation, distance, implementations, inputs, values};
use crate::ops::{DenseNoise, InputRows, LinearMembers, LowRankNoise, NoiseSource, PairRange, noise, table_start};
use crate::rng::key::NoiseKey;
use crate::rng::philox::philox4x32;
use crate::testing::reference::floats::members::{self as oracle, OracleNoise};
use crate::work::counters;
use burn::tensor::{DType, Int, Tensor, TensorData};

/// Pairs, rows of a member, rows of the matrix, columns, rank. Vocabularies that are drawn as a whole, and far larger ones.
const CASES: [(u32, usize, usize, usize, usize); 12] = [
    (1, 1, 1, 1, 1),
    (2, 3, 5, 17, 2),
    (3, 7, 64, 64, 1),
    (5, 2, 257, 33, 3),
    (2, 1, 1000, 10, 4),
    (4, 40, 11, 3, 1),
    (1, 2, 4100, 130, 2),
    (9, 5, 30, 255, 16),
    (2, 3, 129, 700, 1),
    (64, 130, 7, 4, 2),
    (8, 600, 9, 70, 1),
    (2, 3, 20, 2052, 3),
];

struct EmbeddingCase {
    w: Vec<f64>,
    indices: Vec<usize>,
    shape: [usize; 2],
    members: LinearMembers,
}

impl EmbeddingCase {
    fn new(index: usize, input: InputRows) -> (Self, usize) {
        let (pairs, rows, count, d_model, rank) = CASES[index];
        let rows = if input == InputRows::Shared { rows } else { rows * 2 * pairs as usize };
        let word = |i| philox4x32([i, 77, 0, u32::MAX], [0; 2])[0] as usize;
        let case = Self {
            w: inputs(count * d_model, 2),
            indices: (0..rows as u32).map(|i| word(i) % count).collect(),
            shape: [count, d_model],
            members: LinearMembers { pairs: PairRange::new(7, pairs), input },
        };
        (case, rank)
    }

    fn expected(&self, noise: OracleNoise) -> Vec<f64> {
        oracle::embedding(&self.indices, &self.w, noise, self.members, self.shape)
    }

    fn indices(&self, on: &Implementation) -> Tensor<1, Int> {
        let indices: Vec<i32> = self.indices.iter().map(|index| *index as i32).collect();
        Tensor::from_data(TensorData::new(indices, [self.indices.len()]), &on.device)
    }

    fn found(&self, on: &Implementation, noise: OracleNoise, source: NoiseSource) -> Vec<f32> {
        let w = on.tensor(&self.w, self.shape);
        values(on.perturbed_embedding(w, self.indices(on), noise.of_matrix(), source, self.members))
    }
}

fn noises(rank: usize) -> impl Iterator<Item = OracleNoise> {
    DISTRIBUTIONS.into_iter().flat_map(move |distribution| {
        let key = NoiseKey::new(0x1234_5678_9abc_def0, 3, 11).with_distribution(distribution);
        [OracleNoise::LowRank(LowRankNoise::new(key, rank, 0.5)), OracleNoise::Dense(DenseNoise::new(key, 0.5))]
    })
}

#[test]
fn equals_explicit_weights() {
    for index in 0..CASES.len() {
        for input in [InputRows::PerMember, InputRows::Shared] {
            let (case, rank) = EmbeddingCase::new(index, input);
            for noise in noises(rank) {
                let expected = case.expected(noise);
                for on in implementations() {
                    let found = case.found(&on, noise, NoiseSource::Drawn);
                    let off = distance(&found, &expected, rank);
                    assert!(off < 1.0, "{}, case {index}, {input:?}: {off}", on.name);
                }
            }
        }
    }
}

#[test]
fn canaries_fail() {
    let (case, rank) = EmbeddingCase::new(3, InputRows::PerMember);
    for noise in noises(rank) {
        let expected = case.expected(noise);
        for on in implementations() {
            let other_pairs = LinearMembers { pairs: PairRange::new(8, 5), ..case.members };
            let of_other_pairs =
                EmbeddingCase { members: other_pairs, indices: case.indices.clone(), w: case.w.clone(), ..case };
            assert!(distance(&of_other_pairs.found(&on, noise, NoiseSource::Drawn), &expected, rank) > 1000.0);
            let mut other_rows = EmbeddingCase { w: case.w.clone(), indices: case.indices.clone(), ..case };
            other_rows.indices[1] = (other_rows.indices[1] + 1) % case.shape[0];
            assert!(distance(&other_rows.found(&on, noise, NoiseSource::Drawn), &expected, rank) > 1000.0);
        }
    }
}

/// Rows of the matrix that are not next to each other, and columns that are not.
#[test]
fn strided_weights() {
    let (case, rank) = EmbeddingCase::new(7, InputRows::PerMember);
    let [count, d_model] = case.shape;
    for noise in noises(rank) {
        let expected = case.expected(noise);
        for on in implementations() {
            let found = |w| {
                let found =
                    on.perturbed_embedding(w, case.indices(&on), noise.of_matrix(), NoiseSource::Drawn, case.members);
                distance(&values(found), &expected, rank)
            };
            let transposed = on.tensor(&oracle::transpose(&case.w, case.shape), [d_model, count]).transpose();
            assert!(found(transposed) < 1.0, "{}", on.name);
            let wide = Tensor::cat(vec![on.tensor(&case.w, case.shape), Tensor::zeros([count, 3], &on.device)], 1);
            assert!(found(wide.narrow(1, 0, d_model)) < 1.0, "{}", on.name);
        }
    }
}

/// Cached noise gives what drawn noise gives, and a table what its runs give as cached noise.
#[test]
fn sources() {
    const TABLE: usize = 70_000;
    for (index, input) in [(3, InputRows::PerMember), (7, InputRows::Shared), (8, InputRows::PerMember)] {
        let (case, rank) = EmbeddingCase::new(index, input);
        let pairs = case.members.pairs;
        for of in noises(rank) {
            let matrix = of.of_matrix();
            if matrix.elements(case.shape) > TABLE {
                continue;
            }
            for on in implementations() {
                let drawn = case.found(&on, of, NoiseSource::Drawn);
                let held = |pairs, elements| noise(matrix.key(), pairs, elements, &on.device, DType::F32);
                let cached = |first| NoiseSource::Cached {
                    noise: held(PairRange::new(first, pairs.count + 3), matrix.elements(case.shape)),
                    first_pair: 5,
                };
                let found = case.found(&on, of, cached(5));
                let wide: Vec<f64> = drawn.iter().copied().map(f64::from).collect();
                let same = if on.portable { distance(&found, &wide, rank) < 1.0 } else { found == drawn };
                assert!(same, "{}, case {index}", on.name);
                assert!(distance(&case.found(&on, of, cached(6)), &wide, rank) > 1000.0, "canary: {}", on.name);

                let table: Tensor<1> = held(PairRange::new(0, 1), TABLE).reshape([TABLE]);
                let elements = matrix.elements(case.shape);
                let run = |pair| table_start(matrix.key(), pair, elements, TABLE);
                let runs = (0..pairs.count)
                    .map(|p| table.clone().slice(run(pairs.first + p)..run(pairs.first + p) + elements));
                let runs: Tensor<2> = Tensor::stack(runs.collect(), 0);
                let of_runs = case.found(&on, of, NoiseSource::Cached { noise: runs, first_pair: pairs.first });
                let of_table = case.found(&on, of, NoiseSource::Table(table.clone()));
                assert!(of_table == of_runs, "{}, case {index}", on.name);
                assert!(of_table != drawn, "canary: {}, case {index}", on.name);
            }
        }
    }
}

/// Results are the same, bit for bit, however the members are chunked.
#[test]
fn chunks_change_no_bit() {
    for index in [3, 4, 7] {
        let (case, rank) = EmbeddingCase::new(index, InputRows::PerMember);
        for noise in noises(rank) {
            for on in implementations() {
                let whole = case.found(&on, noise, NoiseSource::Drawn);
                let pairs = case.members.pairs;
                let rows = case.indices.len() / pairs.count as usize; // of a pair
                let chunk = |p: u32| {
                    let members = LinearMembers { pairs: PairRange::new(pairs.first + p, 1), ..case.members };
                    let indices = case.indices[p as usize * rows..(p as usize + 1) * rows].to_vec();
                    EmbeddingCase { indices, members, w: case.w.clone(), ..case }.found(&on, noise, NoiseSource::Drawn)
                };
                let chunked: Vec<f32> = (0..pairs.count).flat_map(chunk).collect();
                assert!(whole == chunked, "{}, case {index}", on.name);
            }
        }
    }
}

/// A linear operation on one-hot rows looks up rows, and one under the transposed noise has the same weights.
#[test]
fn is_the_noise_of_linear() {
    let (case, rank) = EmbeddingCase::new(3, InputRows::Shared);
    let [count, d_model] = case.shape;
    for noise in noises(rank) {
        for on in implementations() {
            let rows = case.found(&on, noise, NoiseSource::Drawn);
            let one_hot: Vec<f64> =
                case.indices.iter().flat_map(|k| (0..count).map(move |i| f64::from(u8::from(i == *k)))).collect();
            let expected = oracle::linear(&one_hot, &case.w, None, noise, case.members, case.shape);
            assert!(distance(&rows, &expected, rank) < 1.0, "{}", on.name);
            let x: Vec<f64> = inputs(2 * d_model, 6);
            let transposed = oracle::transpose(&case.w, case.shape);
            let y = oracle::linear(&x, &transposed, None, noise.transposed(), case.members, [d_model, count]);
            // Row r of x times row k of the embedding is element [r, k].
            for (i, (index, of_pair)) in case.indices.iter().zip(rows.chunks(d_model)).enumerate() {
                let product: f64 = x[..d_model].iter().zip(of_pair).map(|(x, w)| x * f64::from(*w)).sum();
                assert!((product - y[*index]).abs() < 1e-4, "{}, row {i}: {product} {}", on.name, y[*index]);
            }
        }
    }
}

/// The kernels hold no noise; the portable defaults say what they hold.
#[test]
fn noise_bytes() {
    let (case, rank) = EmbeddingCase::new(4, InputRows::PerMember);
    for noise in noises(rank) {
        for on in implementations() {
            let before = counters::snapshot();
            case.found(&on, noise, NoiseSource::Drawn);
            let held = (counters::snapshot() - before).noise_bytes;
            assert_eq!(held == 0, !on.portable, "{}: {held}", on.name);
        }
    }
}

fn call(on: &Implementation, indices: Vec<i32>, rank: usize, input: InputRows) {
    let noise = OracleNoise::LowRank(LowRankNoise::new(NoiseKey::new(0, 0, 0), rank, 0.1)).of_matrix();
    let len = indices.len();
    let indices = Tensor::from_data(TensorData::new(indices, [len]), &on.device);
    let members = LinearMembers { pairs: PairRange::new(0, 2), input };
    on.perturbed_embedding(Tensor::zeros([6, 2], &on.device), indices, noise, NoiseSource::Drawn, members);
}

#[test]
#[should_panic(expected = "perturbed embedding: 5 rows are not a multiple of 4 members")]
fn refuses_uneven_rows() {
    call(&implementations()[0], vec![0; 5], 1, InputRows::PerMember);
}

#[cfg(feature = "flex")]
#[test]
#[should_panic(expected = "index 6 is not one of 6 rows")]
fn refuses_other_indices() {
    call(&super::host(), vec![0, 6], 1, InputRows::Shared);
}

#[test]
#[should_panic(expected = "rank 0")]
fn refuses_rank_zero() {
    call(&implementations()[0], vec![0], 0, InputRows::Shared);
}

#[test]
fn no_indices() {
    call(&implementations()[0], Vec::new(), 1, InputRows::Shared);
}
