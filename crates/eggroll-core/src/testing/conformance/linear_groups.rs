//! Perturbed linear with rows of noise that start on groups of the stream. Then kernels may keep noise in registers and take
//! several columns at a time. Also with sizes next to these, where rows do not.

use super::linear::{BiasCase, LinearCase, noises};
use super::{distance, implementations, implementations_of, values};
use crate::ops::{self, InputRows, NoiseSource, PairRange, table_start};
use crate::testing::reference::floats::members::OracleNoise;
use burn::tensor::{DType, Tensor};

/// Pairs and rows of a member, d_input and d_output, rank.
const CASES: [((u32, usize), [usize; 2], usize); 12] = [
    ((3, 1), [64, 64], 1),
    ((2, 5), [128, 192], 2),
    ((2, 20), [192, 64], 5),
    ((2, 1), [40, 128], 1),
    ((1, 9), [45, 45], 5),
    ((2, 3), [64, 40], 2),
    ((2, 3), [40, 128], 8),
    ((2, 1), [64, 1024], 2),
    ((1, 1), [2048, 64], 1),
    ((2, 1), [128, 4096], 1),
    ((1, 2), [4096, 64], 2),
    ((2, 1), [64, 448], 3),
];

/// Aligned and not, several columns at a time, wide: what WebGPU takes of [`CASES`].
const ON_WEBGPU: [usize; 4] = [1, 4, 6, 7];

const WAYS: [(InputRows, BiasCase); 3] = [
    (InputRows::PerMember, BiasCase::Perturbed),
    (InputRows::Shared, BiasCase::Plain),
    (InputRows::PerMember, BiasCase::None),
];

/// Wide dense noise takes the oracle too long.
fn of_case(shape: [usize; 2], rank: usize) -> impl Iterator<Item = OracleNoise> {
    noises(rank).filter(move |noise| shape[0] * shape[1] <= 1 << 16 || matches!(noise, OracleNoise::LowRank(_)))
}

#[test]
fn equals_explicit_weights() {
    for (index, (rows, shape, rank)) in CASES.into_iter().enumerate() {
        for (input, bias) in WAYS {
            let case = LinearCase::of(rows, shape, input, bias);
            for noise in of_case(shape, rank) {
                let expected = case.expected(noise);
                for on in implementations_of(index, &ON_WEBGPU) {
                    let found = case.found(&on, noise, case.x(&on), case.members);
                    let off = on.distance(&found, &expected, shape[0] * rank);
                    assert!(off < 1.0, "{}, {rows:?}, {shape:?}, rank {rank}, {input:?}, {bias:?}: {off}", on.name);
                }
            }
        }
    }
}

/// Cached noise gives what drawn noise gives, and a table what its runs give as cached noise, bit for bit in kernels.
#[test]
fn sources() {
    const TABLE: usize = 20_000;
    for index in [1, 4, 9] {
        let (rows, shape, rank) = CASES[index];
        let case = LinearCase::of(rows, shape, InputRows::PerMember, BiasCase::Perturbed);
        let pairs = case.members.pairs;
        for of in noises(rank).filter(|noise| matches!(noise, OracleNoise::LowRank(_))) {
            let (matrix, bias) = (of.of_matrix(), LinearCase::bias_noise(of));
            let elements = [matrix.elements(shape), shape[1]];
            let keys = [matrix.key(), bias.key];
            for on in implementations() {
                let held = |key, pairs, elements| ops::noise(key, pairs, elements, &on.device, DType::F32);
                let found = |sources| case.found_from(&on, of, sources, case.x(&on), case.members);
                let same = |a: &[f32], b: &[f32]| {
                    let wide: Vec<f64> = b.iter().copied().map(f64::from).collect();
                    if on.portable { distance(a, &wide, shape[0] * rank) < 1.0 } else { a == b }
                };
                let drawn = found([NoiseSource::Drawn, NoiseSource::Drawn]);
                let cached = |first: u32| {
                    [0, 1].map(|i| NoiseSource::Cached {
                        noise: held(keys[i], PairRange::new(first, pairs.count + 3), elements[i]),
                        first_pair: 5,
                    })
                };
                assert!(same(&found(cached(5)), &drawn), "{}, case {index}", on.name);
                assert!(!same(&found(cached(6)), &drawn), "canary: {}, case {index}", on.name);

                let table: Tensor<1> = held(matrix.key(), PairRange::new(0, 1), TABLE).reshape([TABLE]);
                let runs = [0, 1].map(|i| {
                    let run = |pair| {
                        let start = table_start(keys[i], pair, elements[i], TABLE);
                        table.clone().slice(start..start + elements[i])
                    };
                    let runs = (0..pairs.count).map(|p| run(pairs.first + p)).collect();
                    NoiseSource::Cached { noise: Tensor::stack(runs, 0), first_pair: pairs.first }
                });
                let of_table = found([NoiseSource::Table(table.clone()), NoiseSource::Table(table.clone())]);
                assert!(same(&of_table, &found(runs)), "{}, case {index}", on.name);
                assert!(!same(&of_table, &drawn), "canary: {}, case {index}", on.name);
            }
        }
    }
}

/// Rows and columns in other orders give the same up to rounding: where elements are not neighbors they are read one by one.
#[test]
fn strided_rows() {
    for index in [1, 9] {
        let (rows, shape, rank) = CASES[index];
        let case = LinearCase::of(rows, shape, InputRows::PerMember, BiasCase::Plain);
        for noise in noises(rank).filter(|noise| matches!(noise, OracleNoise::LowRank(_))) {
            for on in implementations() {
                let contiguous = case.found(&on, noise, case.x(&on), case.members);
                let contiguous: Vec<f64> = contiguous.into_iter().map(f64::from).collect();
                let transposed = values(case.x(&on).transpose());
                let transposed: Vec<f64> = transposed.into_iter().map(f64::from).collect();
                let x = on.tensor(&transposed, [shape[0], transposed.len() / shape[0]]).transpose();
                let found = case.found(&on, noise, x, case.members);
                let off = on.distance(&found, &contiguous, shape[0] * rank);
                assert!(off < 1.0, "{}, case {index}: {off}", on.name);
            }
        }
    }
}

/// The same bits however the pairs are chunked, also with vectors and several rows to a cube.
#[test]
fn chunks_change_no_bit() {
    for index in [2, 9] {
        let (rows, shape, rank) = CASES[index];
        let case = LinearCase::of(rows, shape, InputRows::PerMember, BiasCase::Perturbed);
        let pairs = case.members.pairs;
        for noise in noises(rank).filter(|noise| matches!(noise, OracleNoise::LowRank(_))) {
            for on in implementations_of(index, &[2]).iter().filter(|on| !on.portable) {
                let whole = case.found(on, noise, case.x(on), case.members);
                let each = case.x.len() / shape[0] / pairs.count as usize; // rows of a pair
                let chunk = |p: u32| {
                    let x = case.x(on).slice(p as usize * each..(p as usize + 1) * each);
                    let members = ops::LinearMembers { pairs: PairRange::new(pairs.first + p, 1), ..case.members };
                    case.found(on, noise, x, members)
                };
                let chunked: Vec<f32> = (0..pairs.count).flat_map(chunk).collect();
                assert!(on.same(&whole, &chunked, shape[0] * rank), "{}, case {index}", on.name);
            }
        }
    }
}
