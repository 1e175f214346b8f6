//! Perturbed linear, low-rank and dense.

use super::{DISTRIBUTIONS, Implementation, distance, implementations, implementations_of, inputs, values};
use crate::ops::{DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange};
use crate::rng::key::NoiseKey;
use crate::testing::reference::floats::members::{self as oracle, OracleNoise};
use crate::work::counters;
use burn::tensor::{Tensor, TensorData};

/// Members, rows of a member, d_input, d_output, rank.
const CASES: [(u32, usize, usize, usize, usize); 16] = [
    (1, 1, 1, 1, 1),
    (1, 1, 3, 17, 2),
    (2, 3, 17, 3, 1),
    (3, 1, 17, 17, 4),
    (5, 2, 255, 10, 1),
    (4, 1, 257, 33, 3),
    (30, 1, 64, 48, 1),
    (9, 1, 16, 255, 16),
    (2, 17, 10, 257, 5),
    (3, 64, 20, 10, 1),
    (17, 1, 4, 256, 64),
    (2, 130, 33, 31, 2),
    (2, 1, 257, 255, 64),
    (1, 3, 255, 1, 64),
    (1, 1, 1, 257, 17),
    (11, 4, 40, 24, 3),
];

/// Few rows, many rows, many rows of a member, a deep sum, a high rank: what WebGPU takes of [`CASES`].
const ON_WEBGPU: [usize; 6] = [3, 4, 8, 9, 11, 12];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BiasCase {
    None,
    Plain,
    Perturbed,
}

pub(super) struct LinearCase {
    pub x: Vec<f64>,
    w: Vec<f64>,
    bias: Vec<f64>,
    pub shape: [usize; 2],
    pub members: LinearMembers,
    bias_kind: BiasCase,
}

const BIAS_NOISE: f64 = 0.3;

impl LinearCase {
    fn new(index: usize, input: InputRows, bias_kind: BiasCase) -> (Self, usize) {
        let (pairs, rows, d_input, d_output, rank) = CASES[index];
        (Self::of((pairs, rows), [d_input, d_output], input, bias_kind), rank)
    }

    pub fn of((pairs, rows): (u32, usize), shape: [usize; 2], input: InputRows, bias_kind: BiasCase) -> Self {
        let [d_input, d_output] = shape;
        let rows = if input == InputRows::Shared { rows } else { rows * 2 * pairs as usize };
        Self {
            x: inputs(rows * d_input, 1),
            w: inputs(d_input * d_output, 2),
            bias: inputs(d_output, 3),
            shape,
            members: LinearMembers { pairs: PairRange::new(7, pairs), input },
            bias_kind,
        }
    }

    pub fn bias_noise(of_weight: OracleNoise) -> DenseNoise {
        DenseNoise::new(NoiseKey::new(5, 1, 2).with_distribution(of_weight.distribution()), BIAS_NOISE)
    }

    pub fn expected(&self, noise: OracleNoise) -> Vec<f64> {
        let bias = match self.bias_kind {
            BiasCase::None => None,
            BiasCase::Plain => Some((&self.bias[..], None)),
            BiasCase::Perturbed => Some((&self.bias[..], Some(Self::bias_noise(noise)))),
        };
        oracle::linear(&self.x, &self.w, bias, noise, self.members, self.shape)
    }

    pub fn x(&self, on: &Implementation) -> Tensor<2> {
        on.tensor(&self.x, [self.x.len() / self.shape[0], self.shape[0]])
    }

    pub fn found(&self, on: &Implementation, noise: OracleNoise, x: Tensor<2>, members: LinearMembers) -> Vec<f32> {
        self.found_from(on, noise, [NoiseSource::Drawn, NoiseSource::Drawn], x, members)
    }

    pub fn found_from(
        &self,
        on: &Implementation,
        noise: OracleNoise,
        [source, bias_source]: [NoiseSource; 2],
        x: Tensor<2>,
        members: LinearMembers,
    ) -> Vec<f32> {
        let bias = on.tensor(&self.bias, [self.shape[1]]);
        let bias = match self.bias_kind {
            BiasCase::None => LinearBias::None,
            BiasCase::Plain => LinearBias::Plain(bias),
            BiasCase::Perturbed => LinearBias::Perturbed(bias, Self::bias_noise(noise), bias_source),
        };
        let w = on.tensor(&self.w, self.shape);
        values(match noise {
            OracleNoise::LowRank(noise) => on.low_rank_linear(x, w, bias, noise, source, members),
            OracleNoise::Dense(noise) => on.dense_linear(x, w, bias, noise, source, members),
        })
    }
}

pub(super) fn noises(rank: usize) -> impl Iterator<Item = OracleNoise> {
    DISTRIBUTIONS.into_iter().flat_map(move |distribution| {
        let key = NoiseKey::new(0x1234_5678_9abc_def0, 3, 11).with_distribution(distribution);
        [OracleNoise::LowRank(LowRankNoise::new(key, rank, 0.5)), OracleNoise::Dense(DenseNoise::new(key, 0.5))]
    })
}

#[test]
fn equals_explicit_weights() {
    for index in 0..CASES.len() {
        // Where sums begin depends on the bias alone: each case has two kinds of it, and neighbors have others.
        let biases = [BiasCase::None, BiasCase::Plain, BiasCase::Perturbed];
        for (input, bias) in [(InputRows::PerMember, biases[index % 3]), (InputRows::Shared, biases[(index + 1) % 3])] {
            let (case, rank) = LinearCase::new(index, input, bias);
            for noise in noises(rank) {
                let expected = case.expected(noise);
                for on in implementations_of(index, &ON_WEBGPU) {
                    let found = case.found(&on, noise, case.x(&on), case.members);
                    let off = on.distance(&found, &expected, case.shape[0] * rank);
                    assert!(off < 1.0, "{}, case {index}, {input:?}, {bias:?}: {off}", on.name);
                }
            }
        }
    }
}

/// A weight that is the transpose of the parameter: both kinds of noise, both kinds of input, all sources.
#[test]
fn transposed_equals_explicit_weights() {
    for index in 0..CASES.len() {
        // A kernel takes either kind of input at every size.
        let input = [InputRows::PerMember, InputRows::Shared][index % 2];
        let (case, rank) = LinearCase::new(index, input, BiasCase::Perturbed);
        for noise in noises(rank) {
            let expected = case.expected(noise.transposed());
            for on in implementations_of(index, &ON_WEBGPU) {
                let found = case.found(&on, noise.transposed(), case.x(&on), case.members);
                let off = on.distance(&found, &expected, case.shape[0] * rank);
                assert!(off < 1.0, "{}, case {index}, {input:?}: {off}", on.name);
                let elements = noise.of_matrix().elements(case.shape);
                let (key, pairs) = (noise.of_matrix().key(), case.members.pairs);
                let held = crate::ops::noise(key, pairs, elements, &on.device, burn::tensor::DType::F32);
                let sources = [NoiseSource::Cached { noise: held, first_pair: pairs.first }, NoiseSource::Drawn];
                let cached = case.found_from(&on, noise.transposed(), sources, case.x(&on), case.members);
                let off = on.distance(&cached, &expected, case.shape[0] * rank);
                assert!(off < 1.0, "{}, cached, case {index}, {input:?}: {off}", on.name);
            }
        }
    }
    let (case, rank) = LinearCase::new(5, InputRows::PerMember, BiasCase::None);
    for noise in noises(rank) {
        let expected = case.expected(noise);
        for on in implementations() {
            let found = case.found(&on, noise.transposed(), case.x(&on), case.members);
            assert!(distance(&found, &expected, case.shape[0] * rank) > 1000.0, "canary: {}", on.name);
        }
    }
}

#[test]
fn canary_neighboring_pair_fails() {
    let (case, rank) = LinearCase::new(4, InputRows::PerMember, BiasCase::Perturbed);
    let wrong = LinearMembers { pairs: PairRange::new(8, 5), ..case.members };
    for noise in noises(rank) {
        let expected = case.expected(noise);
        for on in implementations() {
            let found = case.found(&on, noise, case.x(&on), wrong);
            assert!(distance(&found, &expected, case.shape[0] * rank) > 1000.0, "{}", on.name);
        }
    }
}

/// A weight's Gaussian values next to a bias's signs, and the other way round: each has its own stream.
#[test]
fn distributions_mix() {
    let (case, rank) = LinearCase::new(4, InputRows::PerMember, BiasCase::Perturbed);
    for (noise, bias_like) in noises(rank).zip(noises(rank).skip(2).chain(noises(rank))) {
        let bias_noise = LinearCase::bias_noise(bias_like);
        let expected =
            oracle::linear(&case.x, &case.w, Some((&case.bias, Some(bias_noise))), noise, case.members, case.shape);
        for on in implementations() {
            let bias = LinearBias::Perturbed(on.tensor(&case.bias, [case.shape[1]]), bias_noise, NoiseSource::Drawn);
            let (x, w) = (case.x(&on), on.tensor(&case.w, case.shape));
            let found = values(match noise {
                OracleNoise::LowRank(noise) => on.low_rank_linear(x, w, bias, noise, NoiseSource::Drawn, case.members),
                OracleNoise::Dense(noise) => on.dense_linear(x, w, bias, noise, NoiseSource::Drawn, case.members),
            });
            assert!(on.distance(&found, &expected, case.shape[0] * rank) < 1.0, "{}", on.name);
            let same = case.found(&on, noise, case.x(&on), case.members);
            assert!(distance(&same, &expected, case.shape[0] * rank) > 1000.0, "canary: {}", on.name);
        }
    }
}

/// Kernels give the same bits however the members are chunked.
#[test]
fn chunks_change_no_bit() {
    for index in [6, 9, 10, 11] {
        let (case, rank) = LinearCase::new(index, InputRows::PerMember, BiasCase::Perturbed);
        for noise in noises(rank) {
            for on in implementations_of(index, &ON_WEBGPU).iter().filter(|on| !on.portable) {
                let whole = case.found(on, noise, case.x(on), case.members);
                let pairs = case.members.pairs;
                let rows = case.x.len() / case.shape[0] / pairs.count as usize; // of a pair
                let chunk = |p: u32| {
                    let x = case.x(on).slice(p as usize * rows..(p as usize + 1) * rows);
                    let members = LinearMembers { pairs: PairRange::new(pairs.first + p, 1), ..case.members };
                    case.found(on, noise, x, members)
                };
                let chunked: Vec<f32> = (0..pairs.count).flat_map(chunk).collect();
                assert!(on.same(&whole, &chunked, case.shape[0] * rank), "{}, case {index}", on.name);
            }
        }
    }
}

/// Members that bring the same rows get what the shared form gives.
#[test]
fn shared_equals_expanded() {
    let (shared, rank) = LinearCase::new(9, InputRows::Shared, BiasCase::Perturbed);
    for noise in noises(rank) {
        for on in implementations() {
            let together = shared.found(&on, noise, shared.x(&on), shared.members);
            let expanded = shared.x(&on).repeat_dim(0, shared.members.pairs.members());
            let members = LinearMembers { input: InputRows::PerMember, ..shared.members };
            let each = shared.found(&on, noise, expanded, members);
            let each: Vec<f64> = each.into_iter().map(f64::from).collect();
            assert!(on.distance(&together, &each, shared.shape[0]) < 1.0, "{}", on.name);
        }
    }
}

/// A backend may remember the product of shared rows, but not for other rows or another weight.
#[test]
fn shared_product_is_never_stale() {
    let (case, rank) = LinearCase::new(9, InputRows::Shared, BiasCase::None);
    let noise = LowRankNoise::new(NoiseKey::new(1, 2, 3), rank, 0.5);
    for on in implementations() {
        let (mut x, mut w) = (case.x(&on), on.tensor(&case.w, case.shape));
        let run = |x: &Tensor<2>, w: &Tensor<2>| {
            values(on.low_rank_linear(x.clone(), w.clone(), LinearBias::None, noise, NoiseSource::Drawn, case.members))
        };
        let first = run(&x, &w);
        assert!(on.same(&first, &run(&x, &w), case.shape[0]), "{}", on.name);
        x = x + 1.0;
        let other_rows = run(&x, &w);
        w = w * 2.0;
        let other_weight = run(&x, &w);
        assert!(first != other_rows && other_rows != other_weight, "{}", on.name);
        let afresh = run(&(x.clone() * 1.0), &(w.clone() * 1.0));
        assert!(on.same(&other_weight, &afresh, case.shape[0]), "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let (case, rank) = LinearCase::new(5, InputRows::PerMember, BiasCase::Plain);
    let [rows, d_input] = [case.x.len() / case.shape[0], case.shape[0]];
    let transposed: Vec<f64> =
        (0..d_input).flat_map(|i| (0..rows).map(move |r| (r, i))).map(|(r, i)| case.x[r * d_input + i]).collect();
    for noise in noises(rank) {
        for on in implementations() {
            let x = on.tensor(&transposed, [d_input, rows]).transpose();
            let found = case.found(&on, noise, x, case.members);
            let contiguous = case.found(&on, noise, case.x(&on), case.members);
            assert!(on.same(&found, &contiguous, d_input), "{}", on.name);
        }
    }
}

/// The kernels hold no noise; the portable defaults say what they hold.
#[test]
fn noise_bytes() {
    let (case, rank) = LinearCase::new(6, InputRows::PerMember, BiasCase::Perturbed);
    for noise in noises(rank) {
        for on in implementations() {
            let before = counters::snapshot();
            case.found(&on, noise, case.x(&on), case.members);
            let held = (counters::snapshot() - before).noise_bytes;
            assert_eq!(held == 0, !on.portable, "{}: {held}", on.name);
        }
    }
}

fn call(x: [usize; 2], w: [usize; 2], bias: Option<usize>, rank: usize, input: InputRows) {
    call_on(&implementations()[0], x, w, bias, rank, input);
}

fn call_on(on: &Implementation, x: [usize; 2], w: [usize; 2], bias: Option<usize>, rank: usize, input: InputRows) {
    let zeros = |shape: [usize; 2]| Tensor::<2>::zeros(shape, &on.device);
    let bias = bias.map_or(LinearBias::None, |n| LinearBias::Plain(Tensor::zeros([n], &on.device)));
    let noise = LowRankNoise::new(NoiseKey::new(0, 0, 0), rank, 0.1);
    on.low_rank_linear(
        zeros(x),
        zeros(w),
        bias,
        noise,
        NoiseSource::Drawn,
        LinearMembers { pairs: PairRange::new(0, 2), input },
    );
}

#[test]
#[should_panic(expected = "the input [4, 5] does not fit the weight [6, 2]")]
fn refuses_other_width() {
    call([4, 5], [6, 2], None, 1, InputRows::PerMember);
}

#[test]
#[should_panic(expected = "the bias [3] does not fit the weight [6, 2]")]
fn refuses_other_bias() {
    call([4, 6], [6, 2], Some(3), 1, InputRows::PerMember);
}

#[test]
#[should_panic(expected = "perturbed linear: 5 rows are not a multiple of 4 members")]
fn refuses_uneven_rows() {
    call([5, 6], [6, 2], None, 1, InputRows::PerMember);
}

#[test]
#[should_panic(expected = "rank 0")]
fn refuses_rank_zero() {
    call([4, 6], [6, 2], None, 0, InputRows::Shared);
}

#[test]
fn empty_outputs() {
    for on in implementations() {
        call_on(&on, [0, 6], [6, 2], None, 1, InputRows::Shared);
        call_on(&on, [4, 6], [6, 0], Some(0), 1, InputRows::PerMember);
        call_on(&on, [4, 0], [0, 3], None, 1, InputRows::PerMember);
    }
}

/// Other float types go through the portable path and still agree.
#[test]
fn double_precision() {
    use burn::tensor::DType;
    let (case, rank) = LinearCase::new(3, InputRows::PerMember, BiasCase::None);
    let on = &implementations()[0];
    let rows = case.x.len() / case.shape[0];
    let cast = |values: &[f64], shape: [usize; 2]| {
        let data = TensorData::new(values.to_vec(), shape).convert_dtype(DType::F64);
        Tensor::<2>::from_data(data, (&on.device, DType::F64))
    };
    let (x, w) = (cast(&case.x, [rows, case.shape[0]]), cast(&case.w, case.shape));
    for noise in noises(rank) {
        let (x, w, bias, drawn) = (x.clone(), w.clone(), LinearBias::None, NoiseSource::Drawn);
        let y = match noise {
            OracleNoise::LowRank(noise) => on.low_rank_linear(x, w, bias, noise, drawn, case.members),
            OracleNoise::Dense(noise) => on.dense_linear(x, w, bias, noise, drawn, case.members),
        };
        assert_eq!(y.dtype(), DType::F64);
        let found: Vec<f64> = y.into_data().try_to_vec().expect("f64");
        let found: Vec<f32> = found.into_iter().map(|value| value as f32).collect();
        assert!(distance(&found, &case.expected(noise), case.shape[0] * rank) < 1.0);
    }
}
