//! Operands that do not fit are refused, with the operation and the values found: kernels rely on it. Every operation is tried once by its
//! shapes, and every other fault once, including sums and products that overflow.

use crate::arithmetic::integer::{Rounding, Votes};
use crate::ops::integer::{self, Gate, IntegerNoise, Vector};
use crate::ops::*;
use crate::rng::key::{NoiseKey, PairRange};
use burn::tensor::{DType, Device, Int, Tensor};
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

fn floats<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::ones(shape, &Device::flex())
}

fn doubles<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::ones(shape, (&Device::flex(), DType::F64))
}

fn int8s<const D: usize>(shape: [usize; D]) -> Tensor<D, Int> {
    Tensor::ones(shape, (&Device::flex(), DType::I8))
}

/// Indices, all of them 1.
fn indices(count: usize) -> Tensor<1, Int> {
    Tensor::ones([count], &Device::flex())
}

#[test]
fn linear() {
    let name = "perturbed linear";
    let call = |x: Tensor<2>, weight, bias, rank, source, members| {
        low_rank_linear(x, weight, bias, LowRankNoise::new(key(), rank, 0.1), source, members)
    };
    let with = |source, members| call(floats([4, 3]), floats([3, 2]), LinearBias::None, 2, source, members);
    assert_eq!(with(NoiseSource::Drawn, OWN).dims(), [4, 2], "canary: operands that fit");
    let of = |x, weight, bias, rank| call(x, weight, bias, rank, NoiseSource::Drawn, OWN);
    refused(&[name, "[4, 3]", "[8, 2]"], || of(floats([4, 3]), floats([8, 2]), LinearBias::None, 2));
    refused(&[name, "F64"], || of(floats([4, 3]), doubles([3, 2]), LinearBias::None, 2));
    refused(&[name, "5 rows", "4 members"], || of(floats([5, 3]), floats([3, 2]), LinearBias::None, 2));
    refused(&[name, "bias", "[3]"], || of(floats([4, 3]), floats([3, 2]), LinearBias::Plain(floats([3])), 2));
    for rank in [0, usize::MAX / 4] {
        refused(&[name, &format!("rank {rank}")], || of(floats([4, 3]), floats([3, 2]), LinearBias::None, rank));
    }
    for pairs in [NONE, BEYOND] {
        refused(&[name, "pairs"], || with(NoiseSource::Drawn, LinearMembers { pairs, ..OWN }));
    }
    let most = LinearMembers { pairs: PairRange { first: 0, count: u32::MAX }, input: InputRows::Shared };
    refused(&[name, "memory"], || {
        call(floats([1024, 3]), floats([3, 2]), LinearBias::None, 2, NoiseSource::Drawn, most)
    });
    // Noise of other elements, of fewer pairs, of earlier and of later ones; a short table; another type.
    let cached = |noise: Tensor<2>, first_pair| NoiseSource::Cached { noise, first_pair };
    for (found, source) in [
        ("[2, 9]", cached(floats([2, 9]), 5)),
        ("[1, 10]", cached(floats([1, 10]), 5)),
        ("[2, 10]", cached(floats([2, 10]), 4)),
        ("[9, 10]", cached(floats([9, 10]), 6)),
        ("9", NoiseSource::Table(floats([9]))),
        ("F64", cached(doubles([2, 10]), 5)),
    ] {
        refused(&[found], || with(source, OWN));
    }
    let dense = DenseNoise::new(key(), 0.1);
    refused(&[name, "[8, 2]"], || {
        dense_linear(floats([4, 3]), floats([8, 2]), LinearBias::None, dense, NoiseSource::Drawn, OWN)
    });
}

#[test]
fn other_floats() {
    let dense = DenseNoise::new(key(), 0.1);
    let embedding = |weight: Tensor<2>, noise| {
        perturbed_embedding(weight, indices(4), MatrixNoise::Dense(noise), NoiseSource::Drawn, OWN)
    };
    refused(&["perturbed embedding", "index 1", "1 rows"], || embedding(floats([1, 2]), dense));
    refused(&["perturbed embedding", "transpose"], || embedding(floats([3, 2]), dense.transposed()));
    refused(&["perturbed vector", "pairs"], || perturbed_vector(floats([3]), dense, NoiseSource::Drawn, NONE));
    let estimate = |first, rows| {
        let noise = LowRankNoise::new(key(), 1, 0.1);
        low_rank_estimate(floats([2]), noise, NoiseSource::Drawn, first, [rows, 3], DType::F32)
    };
    refused(&["low-rank estimate", "2 pairs from 4294967295"], || estimate(u32::MAX, 3));
    refused(&["low-rank estimate", &format!("{}", usize::MAX / 2)], || estimate(5, usize::MAX / 2));
    refused(&["dense estimate", &usize::MAX.to_string()], || {
        dense_estimate(floats([2]), dense, NoiseSource::Drawn, 5, usize::MAX, DType::F32)
    });
    refused(&["noise", &usize::MAX.to_string()], || noise(key(), PAIRS, usize::MAX, &Device::flex(), DType::F32));
    let window = Window { kernel: [2, 2], stride: [1, 1], dilation: [1, 1], padding: [(0, 0); 2] };
    let cut = |images: [usize; 4], window| patches(floats(images), window, InputRows::PerMember);
    refused(&["patches", "[1, 4]"], || cut([2, 3, 1, 4], window));
    refused(&["patches", "stride: [0, 1]"], || cut([2, 3, 4, 4], Window { stride: [0, 1], ..window }));
    let padding = [(usize::MAX, 2), (0, 0)];
    refused(&["patches", "padding"], || cut([2, 3, 4, 4], Window { padding, ..window }));
    refused(&["row projection", "[4, 3]", "[2, 3]"], || row_projection(floats([4, 3]), floats([2, 3])));
    let losses = |classes, members| member_cross_entropy(floats([8, classes]), indices(2), members);
    refused(&["cross-entropy", "[8, 3]"], || losses(3, 3));
    refused(&["cross-entropy", "[8, 3]"], || losses(3, usize::MAX / 2));
    refused(&["cross-entropy", "target 1", "1 classes"], || losses(1, 4));
    refused(&["gated recurrence", "[2, 4]"], || {
        gated_recurrence(floats([2, 3, 4]), floats([2, 3, 4]), floats([2, 4]), floats([2, 4]))
    });
}

/// Noise held from the pair `first_pair` on.
fn held(shape: [usize; 2], rank: usize, first_pair: u32) -> Option<IntegerNoise> {
    Some(IntegerNoise { noise: int8s(shape), first_pair, rank, sigma_shift: 4, pairs: PAIRS })
}

#[test]
fn integers() {
    let name = "integer linear";
    let linear = |x, weight, noise| integer::linear(int8s(x), int8s(weight), noise, None, false, Rounding::Floor);
    assert_eq!(linear([4, 3], [3, 2], held([3, 10], 2, 4)).dims(), [4, 2], "canary: operands that fit");
    refused(&[name, "[4, 3]", "[8, 2]"], || linear([4, 3], [8, 2], None));
    refused(&[name, "5 rows", "4 members"], || linear([5, 3], [3, 2], held([2, 10], 2, 5)));
    for (found, noise) in [
        ("[2, 9]", held([2, 9], 2, 5)),
        ("[2, 10]", held([2, 10], 2, 4)),
        ("[2, 10]", held([2, 10], 2, 6)),
        ("rank", held([2, 10], usize::MAX / 4, 5)),
        ("rank 0", held([2, 0], 0, 5)),
    ] {
        refused(&[name, found], || linear([4, 3], [3, 2], noise));
    }
    let other = |change: fn(&mut IntegerNoise)| {
        let mut noise = held([2, 10], 2, 5).expect("noise");
        change(&mut noise);
        linear([4, 3], [3, 2], Some(noise))
    };
    refused(&[name, "sigma shift"], || other(|noise| noise.sigma_shift = 32));
    refused(&[name, "0 members"], || other(|noise| noise.pairs = NONE));
    refused(&["integer noise", "pairs"], || integer::noise(key(), BEYOND, 7, &Device::flex()));
    refused(&["integer embedding", "token 1"], || {
        integer::embedding(indices(4), int8s([1, 2]), None, None, Rounding::Floor)
    });
    let gain = || Vector { values: int8s([2]), noise: None };
    refused(&["integer norm", "[2]"], || integer::norm(int8s([4, 3]), gain(), None, Rounding::Floor));
    refused(&["integer add", "[3, 2]"], || integer::add(int8s([2, 3]), int8s([3, 2]), Rounding::Floor));
    let likelihood =
        |classes, targets| integer::log_likelihood(int8s([8, classes]), indices(targets), 4, Rounding::Floor);
    refused(&["integer log-likelihood", "[7]"], || likelihood(3, 7));
    refused(&["integer log-likelihood", "target 1"], || likelihood(1, 8));
    // Eight rows of width 3.
    let gate = |weight| Gate {
        input: int8s([8, 3]),
        weight: int8s(weight),
        weight_noise: held([2, 12], 2, 5),
        bias: int8s([3]),
        bias_noise: held([2, 6], 0, 5),
    };
    let gru = |state, weight| integer::gru(int8s(state), indices(8), gate([3, 3]), gate(weight));
    refused(&["integer GRU", "[3, 3]"], || gru([3, 3], [3, 3]));
    refused(&["integer GRU", "candidate", "[3, 4]"], || gru([4, 3], [3, 4]));
    refused(&["sum of votes", "[4, 9]"], || integer::sum_votes(int8s([4, 9]), int8s([4]), 2, Votes::Values, [3, 2]));
    refused(&["integer update", "[4, 9]"], || {
        integer::update(int8s([3, 2]), int8s([4, 9]), int8s([4]), 2, Votes::Values, 1)
    });
}

#[test]
fn integers_rounded_to_nearest() {
    let rounding = Rounding::Nearest;
    let other = Some(IntegerNoise { pairs: PairRange { first: 5, count: 1 }, ..held([2, 4], 0, 5).expect("noise") });
    let bias = |noise| Some(Vector { values: int8s([2]), noise });
    refused(&["linear", "4 members", "noise of 2"], || {
        let (noise, bias) = (held([2, 10], 2, 5), bias(other.clone()));
        integer::linear(int8s([4, 3]), int8s([3, 2]), noise, bias, false, rounding)
    });
    refused(&["linear", "[3]"], || {
        let bias = Some(Vector { values: int8s([3]), noise: None });
        integer::linear(int8s([4, 3]), int8s([3, 2]), None, bias, false, rounding)
    });
    refused(&["embedding", "no values"], || integer::embedding(indices(4), int8s([2, 0]), None, None, rounding));
    refused(&["norm", "4 members", "2"], || {
        let gain = bias(held([2, 4], 0, 5)).expect("a vector");
        integer::norm(int8s([4, 2]), gain, bias(other.clone()), rounding)
    });
    refused(&["norm", "no bias with Floor"], || {
        integer::norm(int8s([4, 2]), bias(None).expect("a vector"), bias(None), Rounding::Floor)
    });
    refused(&["head", "[4, 3]"], || integer::head(int8s([4, 3]), int8s([5, 2]), None));
    refused(&["rotary", "positions"], || integer::rotary(int8s([4, 4]), 4, usize::MAX, 2));
    refused(&["attention", "context"], || integer::attention(int8s([4, 4]), int8s([1, 3, 4]), int8s([1, 3, 4]), 2));
    refused(&["log-likelihood", "[7]"], || integer::log_likelihood(int8s([8, 3]), indices(7), 4, rounding));
}
