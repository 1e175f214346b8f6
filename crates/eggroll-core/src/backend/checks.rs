//! What operands have to be before kernels take them as slices. The extension traits are public and safe: anybody may call an
//! operation with tensors that do not fit. So every call is checked, by a few comparisons, and panics with the operation and what was
//! found.

use crate::arithmetic::integer::transformer::{MAX_CONTEXT, MAX_NOISE_DEPTH};
use crate::arithmetic::integer::{FIXED_POINT, MAX_SIGMA_SHIFT};
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive, MAX_DEPTH};
use crate::ops::{BiasPrimitive, InputRows, LinearMembers, MatrixNoise, SourcePrimitive, Window};
use crate::rng::key::PairRange;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::TensorData;

/// No memory holds so many elements, and products of a few constants with fewer do not overflow.
const TOO_MANY: usize = 1 << 40;
/// Pairs that there are.
const PAIRS: u64 = 1 << 32;

/// The shape of an operand that has `D` axes.
#[track_caller]
pub(super) fn dims<const D: usize>(operation: &str, name: &str, operand: &impl TensorMetadata) -> [usize; D] {
    let shape = operand.shape();
    let dims = shape.as_slice().try_into();
    dims.unwrap_or_else(|_| panic!("{operation}: the {name} {:?} should have {D} axes", shape.as_slice()))
}

/// Elements of these sides.
#[track_caller]
pub(super) fn len(operation: &str, sides: &[usize]) -> usize {
    let len = sides.iter().try_fold(1usize, |len, side| len.checked_mul(*side)).filter(|len| *len < TOO_MANY);
    len.unwrap_or_else(|| panic!("{operation}: an output of {sides:?} elements is larger than any memory"))
}

/// Panics if there are no such pairs.
#[track_caller]
pub(super) fn range(operation: &str, first: u32, count: usize) {
    assert!(
        u64::from(first).saturating_add(count as u64) <= PAIRS,
        "{operation}: {count} pairs from {first} on end beyond the last, 2^32 - 1"
    );
}

/// Panics if there are no such pairs, or no pairs at all.
#[track_caller]
fn some(operation: &str, pairs: PairRange) {
    range(operation, pairs.first, pairs.count as usize);
    assert!(pairs.count > 0, "{operation}: no pairs, and so no members");
}

/// Elements of one pair's low-rank noise of a matrix.
#[track_caller]
pub(super) fn low_rank(operation: &str, rank: usize, shape: [usize; 2]) -> usize {
    let elements = shape[0].checked_add(shape[1]).and_then(|sides| sides.checked_mul(rank));
    let elements = elements.filter(|elements| rank > 0 && *elements < TOO_MANY);
    elements.unwrap_or_else(|| panic!("{operation}: the noise of a matrix {shape:?} cannot have rank {rank}"))
}

/// Panics unless the source holds the noise of `count` pairs from `first` on, `elements` each.
#[track_caller]
pub(super) fn source<B: Backend>(
    operation: &str,
    source: &SourcePrimitive<B>,
    (first, count): (u32, usize),
    elements: usize,
) {
    match source {
        SourcePrimitive::Drawn => {}
        SourcePrimitive::Table(table) => {
            let [len] = dims(operation, "noise table", table);
            assert!(
                elements <= len,
                "{operation}: the noise table has {len} elements, fewer than the {elements} of one pair's noise"
            );
        }
        SourcePrimitive::Cached(noise, held_first) => {
            let [held, each] = dims(operation, "cached noise", noise);
            let skip = first.checked_sub(*held_first).map(|skip| skip as usize);
            assert!(
                each == elements && skip.is_some_and(|skip| skip <= held && count <= held - skip),
                "{operation}: the cached noise {:?} of the pairs from {held_first} on is not that of {count} pairs from {first} on \
                 with {elements} elements",
                [held, each]
            );
        }
    }
}

/// Rows of one member in an input of this shape.
#[track_caller]
fn rows_of_member(operation: &str, input: &[usize], members: &LinearMembers) -> usize {
    some(operation, members.pairs);
    let (rows, count) = (input[0], members.pairs.members());
    match members.input {
        InputRows::Shared => _ = len(operation, &[count, rows]),
        InputRows::PerMember => assert!(
            rows.is_multiple_of(count),
            "{operation}: the rows of the input {input:?} are not a multiple of {count} members"
        ),
    }
    members.rows_per_member(rows)
}

/// `[d_input, d_output]`, and rows of one member.
#[track_caller]
pub(super) fn linear<B: Backend>(
    operation: &str,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    bias: &BiasPrimitive<B>,
    members: &LinearMembers,
) -> ([usize; 2], usize) {
    let (input, shape) = (dims::<2>(operation, "input", x), dims::<2>(operation, "weight", weight));
    assert!(input[1] == shape[0], "{operation}: the input {input:?} does not fit the weight {shape:?}");
    let rows = rows_of_member(operation, &input, members);
    if let BiasPrimitive::Plain(bias) | BiasPrimitive::Perturbed(bias, ..) = bias {
        let found = bias.shape();
        assert!(
            found.as_slice() == [shape[1]],
            "{operation}: the bias {:?} does not fit the weight {shape:?}",
            found.as_slice()
        );
    }
    if let BiasPrimitive::Perturbed(_, _, of_bias) = bias {
        source(operation, of_bias, (members.pairs.first, members.pairs.count as usize), shape[1]);
    }
    (shape, rows)
}

/// `[count, d_model]`, and rows of one member.
#[track_caller]
pub(super) fn embedding<B: Backend>(
    operation: &str,
    weight: &FloatTensor<B>,
    indices: &IntTensor<B>,
    noise: &MatrixNoise,
    members: &LinearMembers,
) -> ([usize; 2], usize) {
    let shape = dims::<2>(operation, "weight", weight);
    let rows = rows_of_member(operation, &dims::<1>(operation, "indices", indices), members);
    assert!(!noise.is_transposed(), "{operation}: rows are of the weight {shape:?} itself, not of its transpose");
    (shape, rows)
}

/// Elements of one pair's noise of a matrix.
#[track_caller]
pub(super) fn matrix(operation: &str, noise: &MatrixNoise, shape: [usize; 2]) -> usize {
    match noise {
        MatrixNoise::LowRank(noise) => low_rank(operation, noise.rank, shape),
        MatrixNoise::Dense(_) => len(operation, &shape),
    }
}

/// `n` of a vector `[n]` that is perturbed.
#[track_caller]
pub(super) fn vector<B: Backend>(operation: &str, vector: &FloatTensor<B>, pairs: PairRange) -> usize {
    some(operation, pairs);
    let [n] = dims(operation, "vector", vector);
    n
}

/// Shape of the images, and of their patches.
#[track_caller]
pub(super) fn patches<B: Backend>(
    operation: &str,
    images: &FloatTensor<B>,
    window: &Window,
) -> ([usize; 4], [usize; 2]) {
    let shape @ [count, channels, height, width] = dims(operation, "images", images);
    let size = [height, width];
    let fits = |axis: usize| {
        let reach = window.dilation[axis].checked_mul(window.kernel[axis].saturating_sub(1))?.checked_add(1)?;
        let (before, behind) = window.padding[axis];
        Some(reach.max(before.checked_add(size[axis])?.checked_add(behind)?))
    };
    assert!(
        (0..2).all(|axis| fits(axis).is_some_and(|end| end < TOO_MANY)),
        "{operation}: {window:?} does not fit an image of {size:?}"
    );
    let [rows, columns] = window.positions(size);
    len(operation, &[count, rows, columns, channels, window.kernel[0], window.kernel[1]]);
    (shape, [count * rows * columns, channels * window.size()])
}

/// Panics unless a table of noise `[held pairs, elements]` has the pairs of its members, for `rows` rows.
#[track_caller]
fn held<B: Backend>(operation: &str, (noise, members): (&IntTensor<B>, &IntegerMembers), elements: usize, rows: usize) {
    some(operation, members.pairs);
    let ([held, each], pairs) = (dims(operation, "noise", noise), members.pairs.count as usize);
    assert!(
        each == elements && members.skip <= held && pairs <= held - members.skip,
        "{operation}: the noise {:?} without its first {} pairs is not that of {pairs} pairs with {elements} elements",
        [held, each],
        members.skip
    );
    let bits = FIXED_POINT..=FIXED_POINT + MAX_SIGMA_SHIFT;
    assert!(bits.contains(&members.shift), "{operation}: a shift by {} bits is not one of {bits:?}", members.shift);
    assert!(
        rows.is_multiple_of(members.pairs.members()),
        "{operation}: {rows} rows are not a multiple of {} members",
        members.pairs.members()
    );
}

/// Panics unless the noise is that of a matrix of this shape, for `rows` rows.
#[track_caller]
pub(super) fn matrix_noise<B: Backend>(
    operation: &str,
    noise: &IntegerNoisePrimitive<B>,
    shape: [usize; 2],
    rows: usize,
) {
    if let IntegerNoisePrimitive::Held(noise, members) = noise {
        held::<B>(operation, (noise, members), low_rank(operation, members.rank, shape), rows);
    }
}

/// Panics unless the noise is that of a vector of `n` elements, for `rows` rows.
#[track_caller]
pub(super) fn vector_noise<B: Backend>(operation: &str, noise: &IntegerNoisePrimitive<B>, n: usize, rows: usize) {
    if let IntegerNoisePrimitive::Held(noise, members) = noise {
        held::<B>(operation, (noise, members), 2 * n, rows);
    }
}

/// Panics unless a vector parameter has `n` elements, and the noise is that of it.
#[track_caller]
pub(super) fn integer_vector<B: Backend>(
    operation: &str,
    name: &str,
    (values, noise): (&IntTensor<B>, &IntegerNoisePrimitive<B>),
    n: usize,
    rows: usize,
) {
    let found: [usize; 1] = dims(operation, name, values);
    assert!(found == [n], "{operation}: the {name} {found:?} does not fit rows of {n}");
    vector_noise(operation, noise, n, rows);
}

/// Panics if two kinds of noise are those of different numbers of members.
#[track_caller]
pub(super) fn same_members<B: Backend>(operation: &str, noise: [&IntegerNoisePrimitive<B>; 2]) {
    if let [IntegerNoisePrimitive::Held(_, a), IntegerNoisePrimitive::Held(_, b)] = noise {
        let (a, b) = (a.pairs.members(), b.pairs.members());
        assert!(a == b, "{operation}: noise of {a} members and noise of {b}");
    }
}

/// Panics if int32 does not hold the sums of noise over rows of `depth` values.
#[track_caller]
pub(super) fn noise_depth<B: Backend>(operation: &str, noise: &IntegerNoisePrimitive<B>, depth: usize) {
    if let IntegerNoisePrimitive::Held(_, members) = noise {
        let (rank, most) = (members.rank, MAX_NOISE_DEPTH / depth.max(1));
        assert!(
            (1..=most).contains(&rank),
            "{operation}: noise of rank {rank} over {depth} values: int32 holds the sums of a rank from 1 to {most}"
        );
    }
}

/// Panics for positions from the longest context on.
#[track_caller]
pub(super) fn positions(operation: &str, first: usize, count: usize) {
    assert!(
        first <= MAX_CONTEXT && count <= MAX_CONTEXT - first,
        "{operation}: {count} positions from {first} on: they must be below {MAX_CONTEXT}"
    );
}

/// `[rows, d_input, d_output]` of an integer product.
#[track_caller]
pub(super) fn integer_linear<B: Backend>(operation: &str, x: &IntTensor<B>, weight: &IntTensor<B>) -> [usize; 3] {
    let (input, shape) = (dims::<2>(operation, "input", x), dims::<2>(operation, "weight", weight));
    assert!(
        input[1] == shape[0] && (1..=MAX_DEPTH).contains(&shape[0]),
        "{operation}: the input {input:?} does not fit the weight {shape:?}"
    );
    [input[0], shape[0], shape[1]]
}

/// `[members, width]` of the states of a GRU, and rows of all.
#[track_caller]
pub(super) fn gru<B: Backend>(
    operation: &str,
    state: &IntTensor<B>,
    starts: &IntTensor<B>,
    gates: [(&str, &GatePrimitive<B>); 2],
) -> ([usize; 2], usize) {
    let states @ [members, width] = dims(operation, "state", state);
    let [rows] = dims(operation, "starts", starts);
    assert!(
        members > 0 && width > 0 && rows.is_multiple_of(members),
        "{operation}: {rows} rows are not whole sequences of the states {states:?}"
    );
    for (name, gate) in gates {
        let [input, weight, bias] = [&gate.input, &gate.weight, &gate.bias].map(|part| part.shape());
        assert!(
            input.as_slice() == [rows, width] && weight.as_slice() == [width; 2] && bias.as_slice() == [width],
            "{operation}: the {name} gate's input {:?}, weight {:?} and bias {:?} do not fit {rows} rows of the states {states:?}",
            input.as_slice(),
            weight.as_slice(),
            bias.as_slice()
        );
        matrix_noise(operation, &gate.weight_noise, [width; 2], rows);
        vector_noise(operation, &gate.bias_noise, width, rows);
        for noise in [&gate.weight_noise, &gate.bias_noise] {
            if let IntegerNoisePrimitive::Held(_, noise) = noise {
                let of_noise = noise.pairs.members();
                assert!(of_noise == members, "{operation}: the states {states:?} are not those of {of_noise} members");
            }
        }
    }
    (states, rows)
}

/// Panics unless the noise is that of a parameter of this shape, for as many pairs as there are scores.
#[track_caller]
pub(super) fn votes<B: Backend>(
    operation: &str,
    noise: &IntTensor<B>,
    scores: &IntTensor<B>,
    rank: usize,
    shape: &[usize],
) {
    let (found, [pairs]) = (dims::<2>(operation, "noise", noise), dims(operation, "scores", scores));
    let elements = match (rank, shape) {
        (0, shape) => 2 * len(operation, shape),
        (rank, &[d_input, d_output]) => low_rank(operation, rank, [d_input, d_output]),
        _ => panic!("{operation}: noise of rank {rank} is for matrices, not for {shape:?}"),
    };
    assert!(
        found == [pairs, elements],
        "{operation}: the noise {found:?} does not fit {pairs} scores and the parameter {shape:?} at rank {rank}"
    );
}

/// Indices of an integer tensor of any type.
///
/// # Panics
///
/// Panics if an index is not below `count`, with `what` it is and `of` what.
#[track_caller]
pub(super) fn indices(values: TensorData, count: usize, what: &str, of: &str) -> Vec<usize> {
    let index = |value: i64| {
        let index = usize::try_from(value).ok().filter(|index| *index < count);
        index.unwrap_or_else(|| panic!("{what} {value} is not one of {count} {of}"))
    };
    values.iter::<i64>().map(index).collect()
}
