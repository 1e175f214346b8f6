//! Calls of the extension traits themselves whose operands do not fit: refused, with the operation and what was
//! found. Anybody may make them, and kernels that work on slices would read and write what is not theirs. Every
//! operation once by its shapes, and every other fault once.

use crate::arithmetic::integer::Votes;
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive, IntegerOps};
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PerturbedOps, SourcePrimitive,
    Window,
};
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{DType, FloatDType, IntDType, Shape};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Four members.
const PAIRS: PairRange = PairRange { first: 5, count: 2 };
const NONE: PairRange = PairRange { first: 5, count: 0 };
/// Beyond the last pair that there can be.
const BEYOND: PairRange = PairRange { first: u32::MAX, count: 2 };
const OWN: LinearMembers = LinearMembers { pairs: PAIRS, input: InputRows::PerMember };

/// Panics unless `call` panics with all of `words`.
#[track_caller]
fn refused<T>(words: &[&str], call: impl FnOnce() -> T) {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(call()))).expect_err(&format!("{words:?} is not refused"));
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
    assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
}

fn key() -> NoiseKey {
    NoiseKey::new(1, 2, 3)
}

fn f32s<B: PerturbedOps>(shape: &[usize]) -> FloatTensor<B> {
    B::float_ones(Shape::from(shape.to_vec()), &Default::default(), FloatDType::F32)
}

fn f64s<B: PerturbedOps>(shape: &[usize]) -> FloatTensor<B> {
    B::float_ones(Shape::from(shape.to_vec()), &Default::default(), FloatDType::F64)
}

fn int8s<B: IntegerOps>(shape: &[usize]) -> IntTensor<B> {
    B::int_ones(Shape::from(shape.to_vec()), &Default::default(), IntDType::I8)
}

/// Indices, all of them 1.
fn indices<B: IntegerOps>(shape: &[usize]) -> IntTensor<B> {
    B::int_ones(Shape::from(shape.to_vec()), &Default::default(), IntDType::I64)
}

fn floats<B: PerturbedOps + IntegerOps>() {
    let drawn = || SourcePrimitive::<B>::Drawn;
    let linear = |x: &[usize], weight, bias, rank, source, members| {
        B::low_rank_linear(f32s::<B>(x), weight, bias, LowRankNoise::new(key(), rank, 0.1), source, members)
    };
    let (weight, no_bias) = (|| f32s::<B>(&[3, 2]), || BiasPrimitive::None);
    let fits = linear(&[4, 3], weight(), no_bias(), 2, drawn(), OWN);
    assert_eq!(fits.shape().to_vec(), [4, 2], "canary: operands that fit");
    let name = "perturbed linear";
    refused(&[name, "[4, 3]", "[8, 2]"], || linear(&[4, 3], f32s::<B>(&[8, 2]), no_bias(), 2, drawn(), OWN));
    refused(&[name, "[12]"], || linear(&[12], weight(), no_bias(), 2, drawn(), OWN));
    refused(&[name, "F64"], || linear(&[4, 3], f64s::<B>(&[3, 2]), no_bias(), 2, drawn(), OWN));
    refused(&[name, "[5, 3]", "4 members"], || linear(&[5, 3], weight(), no_bias(), 2, drawn(), OWN));
    let bias = BiasPrimitive::Plain(f32s::<B>(&[3]));
    refused(&[name, "bias", "[3]"], || linear(&[4, 3], weight(), bias, 2, drawn(), OWN));
    for rank in [0, usize::MAX / 4] {
        refused(&[name, &format!("rank {rank}")], || linear(&[4, 3], weight(), no_bias(), rank, drawn(), OWN));
    }
    for pairs in [NONE, BEYOND] {
        let members = LinearMembers { pairs, ..OWN };
        refused(&[name, "pairs"], || linear(&[4, 3], weight(), no_bias(), 2, drawn(), members));
    }
    // Noise of other elements, of fewer pairs, of earlier and of later ones; a short table; another type.
    let cached = |shape: &[usize], first| SourcePrimitive::Cached(f32s::<B>(shape), first);
    for (found, source) in [
        ("[2, 9]", cached(&[2, 9], 5)),
        ("[1, 10]", cached(&[1, 10], 5)),
        ("[2, 10]", cached(&[2, 10], 4)),
        ("[9, 10]", cached(&[9, 10], 6)),
        ("9", SourcePrimitive::Table(f32s::<B>(&[9]))),
        ("F64", SourcePrimitive::Cached(f64s::<B>(&[2, 10]), 5)),
    ] {
        refused(&[name, found], || linear(&[4, 3], weight(), no_bias(), 2, source, OWN));
    }

    let dense = DenseNoise::new(key(), 0.1);
    let other = f32s::<B>(&[8, 2]);
    refused(&[name, "[8, 2]"], || B::dense_linear(f32s::<B>(&[4, 3]), other, no_bias(), dense, drawn(), OWN));
    let embedding = |weight: &[usize], noise| {
        B::perturbed_embedding(f32s::<B>(weight), indices::<B>(&[4]), MatrixNoise::Dense(noise), drawn(), OWN)
    };
    refused(&["perturbed embedding", "[6]"], || embedding(&[6], dense));
    refused(&["perturbed embedding", "index 1", "1 rows"], || embedding(&[1, 2], dense));
    refused(&["perturbed embedding", "transpose"], || embedding(&[3, 2], dense.transposed()));
    refused(&["perturbed vector", "[3, 1]"], || B::perturbed_vector(f32s::<B>(&[3, 1]), dense, drawn(), PAIRS));
    let estimate = |weights: &[usize], rows| {
        let noise = LowRankNoise::new(key(), 1, 0.1);
        B::low_rank_estimate(f32s::<B>(weights), noise, drawn(), 5, rows, 3, DType::F32)
    };
    refused(&["low-rank estimate", "[2, 1]"], || estimate(&[2, 1], 3));
    refused(&["low-rank estimate", &format!("{}", usize::MAX / 2)], || estimate(&[2], usize::MAX / 2));
    refused(&["dense estimate", "[2, 1]"], || B::dense_estimate(f32s::<B>(&[2, 1]), dense, drawn(), 5, 6, DType::F32));
    refused(&["noise", &usize::MAX.to_string()], || B::noise(f32s::<B>(&[1]), key(), PAIRS, usize::MAX));
    let window = Window { kernel: [2, 2], stride: [1, 1], dilation: [1, 1], padding: [(0, 0); 2] };
    let patches = |images: &[usize], window| B::patches(f32s::<B>(images), window, InputRows::PerMember);
    refused(&["patches", "[1, 4]"], || patches(&[2, 3, 1, 4], window));
    refused(&["patches", "stride: [0, 1]"], || patches(&[2, 3, 4, 4], Window { stride: [0, 1], ..window }));
    let padding = [(usize::MAX, 2), (0, 0)];
    refused(&["patches", "padding"], || patches(&[2, 3, 4, 4], Window { padding, ..window }));
    refused(&["row projection", "[4, 3]", "[2, 3]"], || B::row_projection(f32s::<B>(&[4, 3]), f32s::<B>(&[2, 3])));
    let losses = |classes, members| B::member_cross_entropy(f32s::<B>(&[8, classes]), indices::<B>(&[2]), members);
    refused(&["cross-entropy", "[8, 3]"], || losses(3, 3));
    refused(&["cross-entropy", "target 1", "1 classes"], || losses(1, 4));
}

/// Noise held for [`PAIRS`] behind that of `skip` pairs.
fn held<B: IntegerOps>(shape: &[usize], rank: usize, skip: usize) -> IntegerNoisePrimitive<B> {
    IntegerNoisePrimitive::Held(int8s::<B>(shape), IntegerMembers { skip, rank, shift: 8, pairs: PAIRS })
}

fn integers<B: PerturbedOps + IntegerOps>() {
    let none = || IntegerNoisePrimitive::<B>::None;
    let linear = |x: &[usize], weight: &[usize], noise| B::integer_linear(int8s::<B>(x), int8s::<B>(weight), noise);
    let fits = linear(&[4, 3], &[3, 2], held::<B>(&[3, 10], 2, 1));
    assert_eq!(fits.shape().to_vec(), [4, 2], "canary: operands that fit");
    let name = "integer linear";
    refused(&[name, "[4, 3]", "[8, 2]"], || linear(&[4, 3], &[8, 2], none()));
    refused(&[name, "5 rows", "4 members"], || linear(&[5, 3], &[3, 2], held::<B>(&[2, 10], 2, 0)));
    for (found, noise) in [
        ("[2, 9]", held::<B>(&[2, 9], 2, 0)),
        ("[2, 10]", held::<B>(&[2, 10], 2, 1)),
        ("[2, 10]", held::<B>(&[2, 10], 2, usize::MAX)),
        ("rank", held::<B>(&[2, 10], usize::MAX / 4, 0)),
        ("rank 0", held::<B>(&[2, 0], 0, 0)),
    ] {
        refused(&[name, found], || linear(&[4, 3], &[3, 2], noise));
    }
    let members = IntegerMembers { skip: 0, rank: 2, shift: 32, pairs: PAIRS };
    let of = |members| IntegerNoisePrimitive::Held(int8s::<B>(&[2, 10]), members);
    refused(&[name, "shift"], || linear(&[4, 3], &[3, 2], of(members)));
    refused(&[name, "pairs"], || linear(&[4, 3], &[3, 2], of(IntegerMembers { shift: 8, pairs: NONE, ..members })));

    refused(&["integer noise", "pairs"], || B::integer_noise(int8s::<B>(&[1]), key(), BEYOND, 7));
    let embedding = |weight: &[usize]| B::integer_embedding(indices::<B>(&[4]), int8s::<B>(weight), none());
    refused(&["integer embedding", "[6]"], || embedding(&[6]));
    refused(&["integer embedding", "token 1"], || embedding(&[1, 2]));
    refused(&["integer layer norm", "[2]"], || B::integer_layer_norm(int8s::<B>(&[4, 3]), int8s::<B>(&[2]), none()));
    refused(&["integer add", "[3, 2]"], || B::integer_add(int8s::<B>(&[2, 3]), int8s::<B>(&[3, 2])));
    let likelihood =
        |classes, targets| B::integer_log_likelihood(int8s::<B>(&[8, classes]), indices::<B>(&[targets]), 4);
    refused(&["integer log-likelihood", "[7]"], || likelihood(3, 7));
    refused(&["integer log-likelihood", "target 1"], || likelihood(1, 8));
    // Eight rows of width 3.
    let gate = |weight: &[usize]| GatePrimitive {
        input: int8s::<B>(&[8, 3]),
        weight: int8s::<B>(weight),
        weight_noise: held::<B>(&[2, 12], 2, 0),
        bias: int8s::<B>(&[3]),
        bias_noise: held::<B>(&[2, 6], 0, 0),
    };
    let gru = |state: &[usize], weight: &[usize]| {
        B::integer_gru(int8s::<B>(state), indices::<B>(&[8]), gate(&[3, 3]), gate(weight))
    };
    refused(&["integer GRU", "[3, 3]"], || gru(&[3, 3], &[3, 3]));
    refused(&["integer GRU", "candidate", "[3, 4]"], || gru(&[4, 3], &[3, 4]));
    let (noise, scores) = (|| int8s::<B>(&[4, 9]), || int8s::<B>(&[4]));
    refused(&["sum of votes", "[4, 9]"], || B::integer_sum_votes(noise(), scores(), 2, Votes::Values, 3, 2));
    refused(&["integer update", "[4, 9]"], || {
        B::integer_update(int8s::<B>(&[3, 2]), noise(), scores(), 2, Votes::Values, 1)
    });
}

#[cfg(feature = "flex")]
#[test]
fn refused_by_flex() {
    floats::<burn::backend::Flex>();
    integers::<burn::backend::Flex>();
}

#[cfg(feature = "ndarray")]
#[test]
fn refused_by_ndarray() {
    floats::<burn::backend::NdArray>();
    integers::<burn::backend::NdArray>();
}
