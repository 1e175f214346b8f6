//! Calls of the extension traits themselves whose operands do not fit: refused, with the operation and what was found. Anybody may
//! make them, and kernels that work on slices would read and write what is not theirs.

mod integers;

use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::IntegerOps;
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PerturbedOps, SourcePrimitive,
    Window,
};
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
const SHARED: LinearMembers = LinearMembers { pairs: PAIRS, input: InputRows::Shared };

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

fn indices<B: IntegerOps>(shape: &[usize]) -> IntTensor<B> {
    B::int_ones(Shape::from(shape.to_vec()), &Default::default(), IntDType::I64)
}

fn cached<B: PerturbedOps>(shape: &[usize], first: u32) -> SourcePrimitive<B> {
    SourcePrimitive::Cached(f32s::<B>(shape), first)
}

fn table<B: PerturbedOps>(shape: &[usize]) -> SourcePrimitive<B> {
    SourcePrimitive::Table(f32s::<B>(shape))
}

/// Sources that do not hold the noise of [`PAIRS`], `elements` each; what the panic says.
fn bad_sources<B: PerturbedOps>(elements: usize) -> Vec<(String, SourcePrimitive<B>)> {
    let shape = |shape: &[usize]| format!("{shape:?}");
    vec![
        (shape(&[2, elements - 1]), cached([2, elements - 1].as_slice(), 5)),
        (shape(&[1, elements]), cached(&[1, elements], 5)),
        (shape(&[2, elements]), cached(&[2, elements], 4)),
        (shape(&[9, elements]), cached(&[9, elements], 6)),
        (shape(&[2 * elements]), cached(&[2 * elements], 5)),
        (format!("{}", elements - 1), table(&[elements - 1])),
        (shape(&[elements, 1]), table(&[elements, 1])),
        ("F64".into(), SourcePrimitive::Table(f64s::<B>(&[elements]))),
        ("F64".into(), SourcePrimitive::Cached(f64s::<B>(&[2, elements]), 5)),
    ]
}

/// Both linear operations, as one call.
fn linear<B: PerturbedOps + IntegerOps>(
    rank: Option<usize>,
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> Vec<usize> {
    let y = match rank {
        Some(rank) => B::low_rank_linear(x, weight, bias, LowRankNoise::new(key(), rank, 0.1), source, members),
        None => B::dense_linear(x, weight, bias, DenseNoise::new(key(), 0.1), source, members),
    };
    y.shape().to_vec()
}

fn linears<B: PerturbedOps + IntegerOps>() {
    let name = "perturbed linear";
    let x = || f32s::<B>(&[4, 3]);
    let weight = || f32s::<B>(&[3, 2]);
    let none = || BiasPrimitive::None;
    let drawn = || SourcePrimitive::Drawn;
    for (rank, elements) in [(Some(2), 10), (None, 6)] {
        for (members, rows) in [(OWN, 4), (SHARED, 16)] {
            let run = |x, weight, bias, source, members| linear::<B>(rank, x, weight, bias, source, members);
            let good = |bias, source| assert_eq!(run(x(), weight(), bias, source, members), [rows, 2]);
            good(none(), drawn());
            good(BiasPrimitive::Plain(f32s::<B>(&[2])), cached(&[3, elements], 4));
            let perturbed = |bias, source| BiasPrimitive::Perturbed(bias, DenseNoise::new(key(), 0.1), source);
            good(perturbed(f32s::<B>(&[2]), drawn()), table(&[elements]));

            refused(&[name, "[4, 3]", "[8, 2]"], || run(x(), f32s::<B>(&[8, 2]), none(), drawn(), members));
            refused(&[name, "[12]"], || run(f32s::<B>(&[12]), weight(), none(), drawn(), members));
            refused(&[name, "[3, 2, 1]"], || run(x(), f32s::<B>(&[3, 2, 1]), none(), drawn(), members));
            refused(&[name, "F64"], || run(x(), f64s::<B>(&[3, 2]), none(), drawn(), members));
            let wrong = [f32s::<B>(&[1]), f32s::<B>(&[3]), f32s::<B>(&[1, 2])];
            for bias in wrong {
                let shape = format!("{:?}", bias.shape().to_vec());
                refused(&[name, "bias", &shape], || run(x(), weight(), BiasPrimitive::Plain(bias), drawn(), members));
            }
            for (found, source) in bad_sources::<B>(elements) {
                refused(&[name, &found], || run(x(), weight(), none(), source, members));
            }
            for (found, source) in bad_sources::<B>(2) {
                let bias = perturbed(f32s::<B>(&[2]), source);
                refused(&[name, &found], || run(x(), weight(), bias, drawn(), members));
            }
            for pairs in [NONE, BEYOND] {
                let members = LinearMembers { pairs, ..members };
                refused(&[name, "pairs"], || run(x(), weight(), none(), drawn(), members));
            }
        }
        let five = || f32s::<B>(&[5, 3]);
        refused(&[name, "[5, 3]", "4 members"], || linear::<B>(rank, five(), weight(), none(), drawn(), OWN));
        // Nothing to compute is no mistake.
        for (rows, d_input, d_output) in [(0, 3, 2), (4, 0, 2), (4, 3, 0), (0, 0, 0)] {
            for (members, times) in [(OWN, 1), (SHARED, 4)] {
                let (x, weight) = (f32s::<B>(&[rows, d_input]), f32s::<B>(&[d_input, d_output]));
                assert_eq!(linear::<B>(rank, x, weight, none(), drawn(), members), [times * rows, d_output]);
            }
        }
    }
    for rank in [0, 1 << 40, usize::MAX / 4] {
        let words = [name, &format!("rank {rank}")];
        refused(&words, || linear::<B>(Some(rank), x(), weight(), none(), drawn(), OWN));
    }
}

fn embeddings<B: PerturbedOps + IntegerOps>() {
    let name = "perturbed embedding";
    let low_rank = |rank| MatrixNoise::LowRank(LowRankNoise::new(key(), rank, 0.1));
    let run = |weight, tokens, noise, source, members| {
        B::perturbed_embedding(weight, tokens, noise, source, members).shape().to_vec()
    };
    let weight = || f32s::<B>(&[3, 2]);
    for (noise, elements) in [(low_rank(2), 10), (MatrixNoise::Dense(DenseNoise::new(key(), 0.1)), 6)] {
        assert_eq!(run(weight(), indices::<B>(&[4]), noise, SourcePrimitive::Drawn, OWN), [4, 2]);
        assert_eq!(run(weight(), indices::<B>(&[4]), noise, SourcePrimitive::Drawn, SHARED), [16, 2]);
        assert_eq!(run(weight(), indices::<B>(&[0]), noise, SourcePrimitive::Drawn, OWN), [0, 2]);
        let go = |weight, tokens, members| run(weight, tokens, noise, SourcePrimitive::Drawn, members);
        refused(&[name, "[6]"], || go(f32s::<B>(&[6]), indices::<B>(&[4]), OWN));
        refused(&[name, "[2, 2]"], || go(weight(), indices::<B>(&[2, 2]), OWN));
        refused(&[name, "[5]", "4 members"], || go(weight(), indices::<B>(&[5]), OWN));
        refused(&[name, "index 1", "1 rows"], || go(f32s::<B>(&[1, 2]), indices::<B>(&[4]), OWN));
        for pairs in [NONE, BEYOND] {
            refused(&[name, "pairs"], || go(weight(), indices::<B>(&[4]), LinearMembers { pairs, ..OWN }));
        }
        for (found, source) in bad_sources::<B>(elements) {
            refused(&[name, &found], || run(weight(), indices::<B>(&[4]), noise, source, OWN));
        }
        let noise = match noise {
            MatrixNoise::LowRank(noise) => MatrixNoise::LowRank(noise.transposed()),
            MatrixNoise::Dense(noise) => MatrixNoise::Dense(noise.transposed()),
        };
        refused(&[name, "transpose"], || run(weight(), indices::<B>(&[4]), noise, SourcePrimitive::Drawn, OWN));
    }
    for rank in [0, usize::MAX / 4] {
        let words = [name, &format!("rank {rank}")];
        refused(&words, || run(weight(), indices::<B>(&[4]), low_rank(rank), SourcePrimitive::Drawn, OWN));
    }
}

fn other_floats<B: PerturbedOps + IntegerOps>() {
    let patches = |images: &[usize], window| B::patches(f32s::<B>(images), window, InputRows::PerMember);
    let window = Window { kernel: [2, 2], stride: [1, 1], dilation: [1, 1], padding: [(0, 0); 2] };
    assert_eq!(patches(&[2, 3, 4, 4], window).shape().to_vec(), [18, 12]);
    let padded = Window { padding: [(1, 1), (0, 0)], ..window };
    assert_eq!(patches(&[2, 3, 0, 4], padded).shape().to_vec(), [6, 12]);
    refused(&["patches", "[3, 4, 4]"], || patches(&[3, 4, 4], window));
    refused(&["patches", "[1, 4]"], || patches(&[2, 3, 1, 4], window));
    refused(&["patches", "stride: [0, 1]"], || patches(&[2, 3, 4, 4], Window { stride: [0, 1], ..window }));
    let dilation = [1, usize::MAX];
    refused(&["patches", "dilation"], || patches(&[2, 3, 4, 4], Window { dilation, ..window }));
    let padding = [(usize::MAX, 2), (0, 0)];
    refused(&["patches", "padding"], || patches(&[2, 3, 4, 4], Window { padding, ..window }));
    let kernel = [1 << 40, 1 << 40];
    let padding = [(1 << 40, 0), (1 << 40, 0)];
    refused(&["patches"], || patches(&[1, 1, 4, 4], Window { kernel, padding, ..window }));

    let noise = DenseNoise::new(key(), 0.1);
    let vector = |shape: &[usize], source, pairs| B::perturbed_vector(f32s::<B>(shape), noise, source, pairs);
    assert_eq!(vector(&[3], SourcePrimitive::Drawn, PAIRS).shape().to_vec(), [4, 3]);
    refused(&["perturbed vector", "[3, 1]"], || vector(&[3, 1], SourcePrimitive::Drawn, PAIRS));
    for pairs in [NONE, BEYOND] {
        refused(&["perturbed vector", "pairs"], || vector(&[3], SourcePrimitive::Drawn, pairs));
    }
    for (found, source) in bad_sources::<B>(3) {
        refused(&["perturbed vector", &found], || vector(&[3], source, PAIRS));
    }

    let like = || f32s::<B>(&[1]);
    assert_eq!(B::noise(like(), key(), PAIRS, 7).shape().to_vec(), [2, 7]);
    refused(&["noise", "pairs"], || B::noise(like(), key(), BEYOND, 7));
    refused(&["noise", &usize::MAX.to_string()], || B::noise(like(), key(), PAIRS, usize::MAX));

    let projection = |gradient: &[usize], x: &[usize]| B::row_projection(f32s::<B>(gradient), f32s::<B>(x));
    for rows in [0, 1, 2, 9] {
        assert_eq!(projection(&[4, 3], &[rows, 4]).shape().to_vec(), [4, 3]);
    }
    refused(&["row projection", "[4, 3]", "[2, 3]"], || projection(&[4, 3], &[2, 3]));
    refused(&["row projection", "[4]"], || projection(&[4], &[2, 4]));
    refused(&["row projection", "[8]"], || projection(&[4, 3], &[8]));
    refused(&["row projection", "F64"], || B::row_projection(f32s::<B>(&[4, 3]), f64s::<B>(&[2, 4])));

    let losses = |logits: &[usize], targets: &[usize], members| {
        B::member_cross_entropy(f32s::<B>(logits), indices::<B>(targets), members)
    };
    assert_eq!(losses(&[8, 3], &[2], 4).shape().to_vec(), [4]);
    for (logits, targets, members) in [([8, 3], 3, 4), ([8, 3], 2, 3), ([0, 3], 0, 4), ([8, 0], 2, 4), ([8, 3], 2, 0)] {
        let words = [&format!("{logits:?}"), &format!("[{targets}]"), "cross-entropy"];
        refused(&words, || losses(&logits, &[targets], members));
    }
    refused(&["cross-entropy", "[24]"], || losses(&[24], &[2], 4));
    refused(&["cross-entropy", "[2, 1]"], || losses(&[8, 3], &[2, 1], 4));
    refused(&["cross-entropy", "target 1", "1 classes"], || losses(&[8, 1], &[2], 4));
}

fn estimates<B: PerturbedOps + IntegerOps>() {
    let low_rank = |weights: &[usize], rank, source, first| {
        B::low_rank_estimate(f32s::<B>(weights), LowRankNoise::new(key(), rank, 0.1), source, first, 3, 2, DType::F32)
    };
    let dense = |weights: &[usize], source, first| {
        B::dense_estimate(f32s::<B>(weights), DenseNoise::new(key(), 0.1), source, first, 6, DType::F32)
    };
    assert_eq!(low_rank(&[2], 2, SourcePrimitive::Drawn, 5).shape().to_vec(), [3, 2]);
    assert_eq!(low_rank(&[0], 2, SourcePrimitive::Drawn, 5).shape().to_vec(), [3, 2]);
    assert_eq!(dense(&[2], SourcePrimitive::Drawn, 5).shape().to_vec(), [6]);
    refused(&["low-rank estimate", "[2, 1]"], || low_rank(&[2, 1], 2, SourcePrimitive::Drawn, 5));
    refused(&["low-rank estimate", "pairs"], || low_rank(&[2], 2, SourcePrimitive::Drawn, u32::MAX));
    refused(&["dense estimate", "[2, 1]"], || dense(&[2, 1], SourcePrimitive::Drawn, 5));
    refused(&["dense estimate", "pairs"], || dense(&[2], SourcePrimitive::Drawn, u32::MAX));
    for rank in [0, usize::MAX / 4] {
        let words = ["low-rank estimate", &format!("rank {rank}")];
        refused(&words, || low_rank(&[2], rank, SourcePrimitive::Drawn, 5));
    }
    for (found, source) in bad_sources::<B>(10) {
        refused(&["low-rank estimate", &found], || low_rank(&[2], 2, source, 5));
    }
    for (found, source) in bad_sources::<B>(6) {
        refused(&["dense estimate", &found], || dense(&[2], source, 5));
    }
    let transposed = LowRankNoise::new(key(), 2, 0.1).transposed();
    let call = || B::low_rank_estimate(f32s::<B>(&[2]), transposed, SourcePrimitive::Drawn, 5, 3, 2, DType::F32);
    refused(&["low-rank estimate", "transpose"], call);
    let transposed = DenseNoise::new(key(), 0.1).transposed();
    let call = || B::dense_estimate(f32s::<B>(&[2]), transposed, SourcePrimitive::Drawn, 5, 6, DType::F32);
    refused(&["dense estimate", "transpose"], call);
    let sides = [usize::MAX / 2, 3];
    let noise = LowRankNoise::new(key(), 1, 0.1);
    let call =
        || B::low_rank_estimate(f32s::<B>(&[2]), noise, SourcePrimitive::Drawn, 5, sides[0], sides[1], DType::F32);
    refused(&["low-rank estimate", &format!("{sides:?}")], call);
}

/// All operations of both traits.
fn everything<B: PerturbedOps + IntegerOps>() {
    assert_eq!(f32s::<B>(&[1]).dtype(), DType::F32);
    linears::<B>();
    embeddings::<B>();
    other_floats::<B>();
    estimates::<B>();
    integers::rows::<B>();
    integers::grus::<B>();
    integers::votes::<B>();
}

#[cfg(feature = "flex")]
#[test]
fn refused_by_flex() {
    everything::<burn::backend::Flex>();
}

#[cfg(feature = "ndarray")]
#[test]
fn refused_by_ndarray() {
    everything::<burn::backend::NdArray>();
}
