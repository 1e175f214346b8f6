//! Products of int8 against the documented rounding, in f64.

use super::*;

const SHAPES: [[usize; 2]; 5] = [[1, 1], [7, 33], [96, 31], [193, 64], [576, 40]];
const BLOCK: usize = 192;

/// `x·H` of a row, or of a column with a stride: Hadamard matrices over lanes of 16 elements, 32 lanes at most, the largest power of
/// two that is left.
fn rotated(x: &[f64]) -> Vec<f64> {
    let (mut y, mut start) = (x.to_vec(), 0);
    while x.len() - start >= 16 {
        let lanes = (1usize << ((x.len() - start) / 16).ilog2()).min(32);
        for (i, offset) in (0..lanes).flat_map(|i| (0..16).map(move |offset| (i, offset))) {
            let sign = |j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            y[start + i * 16 + offset] = (0..lanes).map(|j| sign(j) * x[start + j * 16 + offset]).sum();
        }
        start += lanes * 16;
    }
    y
}

/// `Hᵀ/n·w`, so that products stay.
fn rotated_back(w: &[f64]) -> Vec<f64> {
    let (mut y, mut start) = (rotated(w), 0);
    while w.len() - start >= 16 {
        let lanes = (1usize << ((w.len() - start) / 16).ilog2()).min(32);
        y[start..start + 16 * lanes].iter_mut().for_each(|y| *y /= lanes as f64);
        start += 16 * lanes;
    }
    y
}

/// Integers of a block, their scale, and which of them lie so near to the middle of two that float32 may round to the other.
struct Rounded {
    integers: Vec<f64>,
    scale: f64,
    near: Vec<bool>,
}

fn round(block: &[f64]) -> Rounded {
    let largest = block.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    let quanta = |x: &f64| if largest > 0.0 { x * 127.0 / largest } else { 0.0 };
    let near = |x: &f64| ((quanta(x) - quanta(x).floor()) - 0.5).abs() < 1e-3;
    Rounded {
        integers: block.iter().map(|x| quanta(x).round_ties_even()).collect(),
        scale: largest / 127.0,
        near: block.iter().map(near).collect(),
    }
}

/// The product as documented and how far rounding in float32 may lead from it, for every element.
fn emulated(x: &[f32], weight: &[f32], [d_input, d_output]: [usize; 2]) -> Vec<(f64, f64)> {
    let wide = |x: f32| f64::from(x);
    let columns: Vec<Vec<Rounded>> = (0..d_output)
        .map(|c| rotated_back(&(0..d_input).map(|k| wide(weight[k * d_output + c])).collect::<Vec<_>>()))
        .map(|column| column.chunks(BLOCK).map(round).collect())
        .collect();
    let of_row = |x: &[f32]| {
        let x: Vec<f64> = x.iter().copied().map(wide).collect();
        let blocks: Vec<Rounded> = rotated(&x).chunks(BLOCK).map(round).collect();
        columns.iter().map(move |column| dot(&blocks, column)).collect::<Vec<_>>()
    };
    x.chunks_exact(d_input).flat_map(of_row).collect()
}

fn dot(x: &[Rounded], w: &[Rounded]) -> (f64, f64) {
    let (mut sum, mut away) = (0.0, 0.0);
    for (x, w) in x.iter().zip(w) {
        let scale = x.scale * w.scale;
        let product: f64 = x.integers.iter().zip(&w.integers).map(|(x, w)| x * w).sum();
        sum += scale * product;
        away += 1e-6 * scale * (product.abs() + 127.0);
        for k in 0..x.integers.len() {
            let (a, b) = (f64::from(u8::from(x.near[k])), f64::from(u8::from(w.near[k])));
            away += scale * (a * w.integers[k].abs() + b * x.integers[k].abs() + a * b);
        }
    }
    (sum, away)
}

fn worst(found: &[f32], expected: &[(f64, f64)]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let away = |(found, (expected, away)): (&f32, &(f64, f64))| (f64::from(*found) - expected).abs() / (away + 1e-30);
    found.iter().zip(expected).map(away).fold(0.0, f64::max)
}

#[test]
fn round_as_documented() {
    for shape in SHAPES {
        let weight = inputs(shape[0] * shape[1], 1);
        let packed = PackedMatrix::new(&weight, shape, Precision::Int8);
        for rows in [1, 7, 8, 9, 15, 32, 75] {
            let x = inputs(rows * shape[0], 2);
            let found = multiply(&packed, &activations(Precision::Int8, &x, shape[0]), None);
            let worst = worst(&found, &emulated(&x, &weight, shape));
            assert!(worst < 1.0, "{shape:?}, {rows} rows: {worst}");
        }
    }
}

/// Neither float32 itself nor a swapped row is what is found.
#[test]
fn other_roundings_are_found() {
    let shape = [576, 40];
    let (weight, x) = (inputs(shape[0] * shape[1], 1), inputs(9 * shape[0], 2));
    let packed = PackedMatrix::new(&weight, shape, Precision::Int8);
    let found = multiply(&packed, &activations(Precision::Int8, &x, shape[0]), None);
    let mut expected = emulated(&x, &weight, shape);
    assert!(worst(&found, &expected) < 1.0);
    let float = PackedMatrix::new(&weight, shape, Precision::F32);
    let float = multiply(&float, &activations(Precision::F32, &x, shape[0]), None);
    assert!(worst(&float, &expected) > 3.0, "{}", worst(&float, &expected));
    let (first, second) = expected.split_at_mut(shape[1]);
    first.swap_with_slice(&mut second[..shape[1]]);
    assert!(worst(&found, &expected) > 100.0);
}

fn relative(found: &[f32], expected: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
    let error = square(&mut found.iter().zip(expected).map(|(a, b)| f64::from(a - b)));
    (error / square(&mut expected.iter().copied().map(f64::from))).sqrt()
}

/// Eight bits of rows and weights: about 1.3 % of a product, also with outliers of 30 times the usual size.
#[test]
fn near_float32() {
    for (outliers, limit) in [(false, 0.015), (true, 0.02)] {
        let shape = [576, 160];
        let (weight, mut x) = (inputs(shape[0] * shape[1], 1), inputs(9 * shape[0], 2));
        if outliers {
            x.iter_mut().step_by(151).for_each(|x| *x *= 30.0);
        }
        let (factors, rows) = (factors(1, shape, 3), members(9, 3));
        let [float, integer] = [Precision::F32, Precision::Int8].map(|precision| {
            let packed = PackedMatrix::new(&weight, shape, precision);
            [None, Some((&factors, rows.as_slice()))]
                .map(|noise| multiply(&packed, &activations(precision, &x, shape[0]), noise))
        });
        let error = [0, 1].map(|noise| relative(&integer[noise], &float[noise]));
        assert!(error[0] < limit && error[1] < limit, "outliers {outliers}: {error:?}");
        assert!(error[0] > 1e-3, "the formats are the same: {error:?}");
    }
}

/// The noise is added in float32, for any precision of the weight.
#[test]
fn noise_is_not_rounded() {
    let shape = [193, 64];
    let packed = PackedMatrix::new(&vec![0.0; shape[0] * shape[1]], shape, Precision::Int8);
    let float = PackedMatrix::new(&vec![0.0; shape[0] * shape[1]], shape, Precision::F32);
    let (factors, rows) = (factors(3, shape, 3), members(15, 3));
    let x = inputs(rows.len() * shape[0], 2);
    let noise = Some((&factors, rows.as_slice()));
    let found = multiply(&packed, &activations(Precision::Int8, &x, shape[0]), noise);
    let expected = multiply(&float, &activations(Precision::F32, &x, shape[0]), noise);
    assert_eq!(bits(&found), bits(&expected));
}

#[test]
fn extreme_values() {
    let shape = [40, 33];
    let weight = inputs(shape[0] * shape[1], 1);
    let packed = PackedMatrix::new(&weight, shape, Precision::Int8);
    // [zeros, large, small, a NaN, an infinity, plain]
    let mut x = inputs(6 * shape[0], 2);
    x[..40].fill(0.0);
    x[40..80].iter_mut().for_each(|x| *x *= 1e30);
    x[80..120].iter_mut().for_each(|x| *x *= 1e-20);
    x[125] = f32::NAN;
    x[165] = f32::NEG_INFINITY;
    let found = multiply(&packed, &activations(Precision::Int8, &x, shape[0]), None);
    let row = |row: usize| &found[row * shape[1]..][..shape[1]];
    assert!(row(0).iter().all(|y| *y == 0.0));
    let expected = emulated(&x, &weight, shape);
    for finite in [1, 2, 5] {
        let expected = &expected[finite * shape[1]..][..shape[1]];
        assert!(worst(row(finite), expected) < 1.0, "row {finite}: {}", worst(row(finite), expected));
    }
    assert!(row(3).iter().chain(row(4)).all(|y| y.is_nan()), "{:?} {:?}", row(3), row(4));
    let zeros = PackedMatrix::new(&vec![0.0; shape[0] * shape[1]], shape, Precision::Int8);
    let x = activations(Precision::Int8, &inputs(shape[0], 2), shape[0]);
    assert!(multiply(&zeros, &x, None).iter().all(|y| *y == 0.0));
}

/// A weight that is not finite makes the products of its column none, in every format, and touches no other column. Rows of rotated parts,
/// of the part behind them, and of both blocks.
#[test]
fn weights_that_are_no_numbers() {
    for (shape, precision) in [[64, 64], [200, 33]].into_iter().flat_map(|s| Precision::ALL.map(|p| (s, p))) {
        let (weight, x) = (inputs(shape[0] * shape[1], 1), inputs(9 * shape[0], 2));
        let product = |weight: &[f32]| {
            multiply(&PackedMatrix::new(weight, shape, precision), &activations(precision, &x, shape[0]), None)
        };
        let plain = product(&weight);
        for (row, column) in [(0, 0), (37, 20), (shape[0] - 1, shape[1] - 1)] {
            for value in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut weight = weight.clone();
                weight[row * shape[1] + column] = value;
                for (at, (found, plain)) in product(&weight).iter().zip(&plain).enumerate() {
                    let expected =
                        if at % shape[1] == column { !found.is_finite() } else { found.to_bits() == plain.to_bits() };
                    assert!(expected, "{precision}, {value} at {row}, {column}: {found} in column {}", at % shape[1]);
                }
            }
        }
    }
}

#[test]
fn changed_integers_are_counted() {
    let shape = [40, 33];
    let weight = inputs(shape[0] * shape[1], 1);
    let pack = |weight: &[f32], precision| PackedMatrix::new(weight, shape, precision);
    let before = pack(&weight, Precision::Int8);
    assert_eq!(before.changed(&pack(&weight, Precision::Int8)), Some(0));
    // The last 8 rows are not rotated: one weight is one integer. Its column keeps its largest.
    let mut next = weight.clone();
    let at = 38 * shape[1] + 5;
    next[at] = if weight[at] > 0.0 { weight[at] - 0.1 } else { weight[at] + 0.1 };
    let changed = pack(&next, Precision::Int8).changed(&before).expect("the same format");
    assert!((1..=shape[0]).contains(&changed), "{changed}");
    assert_eq!(before.changed(&pack(&weight, Precision::F32)), None);
    assert_eq!(before.changed(&PackedMatrix::new(&weight, [33, 40], Precision::Int8)), None);
}

/// Buffers may be used again for rows of another number and width.
#[test]
fn buffers_are_used_again() {
    let mut x = Activations::new(Precision::Int8);
    for (shape, rows) in [([193, 64], 15), ([7, 33], 3), ([576, 40], 9), ([96, 31], 1)] {
        let packed = PackedMatrix::new(&inputs(shape[0] * shape[1], 1), shape, Precision::Int8);
        let values = inputs(rows * shape[0], 2);
        x.fill(rows, shape[0], |x| x.copy_from_slice(&values));
        let anew = multiply(&packed, &activations(Precision::Int8, &values, shape[0]), None);
        assert_eq!(bits(&multiply(&packed, &x, None)), bits(&anew), "{shape:?}");
    }
}

/// Integers of four bits and of bytes: the same products, columns and moves.
#[test]
fn four_bits_are_the_same() {
    for shape in [[1, 1], [7, 33], [32, 32], [33, 64], [96, 31], [160, 70], [512, 40]] {
        let [d_input, d_output] = shape;
        let integers: Vec<i8> = inputs(d_input * d_output, 1).iter().map(|x| (x * 8.0).floor() as i8).collect();
        // Exact in f16, of both signs.
        let scales: Vec<f32> =
            inputs(d_input.div_ceil(32) * d_output, 2).iter().map(|x| (x * 64.0).floor() / 1024.0).collect();
        let pack = |integers: &[i8], range| PackedMatrix::of_blocks(integers, &scales, shape, range);
        let (mut four, mut bytes) = (pack(&integers, -8..=7), pack(&integers, -127..=127));
        assert_eq!(four.changed(&bytes), None, "canary: they are stored in two ways");
        let same = |four: &PackedMatrix, bytes: &PackedMatrix| {
            for rows in [1, 9, 40] {
                let x = activations(Precision::Q8_0, &inputs(rows * d_input, 3), d_input);
                let (factors, members) = (factors(2, shape, 3), members(rows, 3));
                for noise in [None, Some((&factors, members.as_slice()))] {
                    assert_eq!(
                        bits(&multiply(four, &x, noise)),
                        bits(&multiply(bytes, &x, noise)),
                        "{shape:?}, {rows} rows"
                    );
                }
            }
            assert!((0..d_output).all(|output| four.column(output).eq(bytes.column(output))), "{shape:?}");
        };
        same(&four, &bytes);
        let start = four.column(0).next();
        // No more than a step: the ends of the ranges differ.
        let inward = |integer: i8, x: f32, scale: f32| if (-7..=6).contains(&integer) { x * scale } else { 0.0 };
        let moves: Vec<f32> = (inputs(d_input * d_output, 4).iter().enumerate())
            .map(|(at, x)| inward(integers[at], *x, scales[at / d_output / 32 * d_output + at % d_output]))
            .collect();
        let mut carried = [vec![0; moves.len()], vec![0; moves.len()]];
        let [of_four, of_bytes] = &mut carried;
        assert_eq!(four.nudge(&moves, of_four), bytes.nudge(&moves, of_bytes));
        assert_eq!(of_four, of_bytes);
        same(&four, &bytes);
        assert!(d_input == 1 || four.changed(&pack(&integers, -8..=7)) > Some(0), "moved: {start:?}");
        // Beyond the ends they stay.
        four.nudge(&vec![1e3; moves.len()], of_four);
        let ends = four.column(d_output - 1).filter(|(_, scale)| *scale != 0.0);
        assert!(ends.map(|(integer, scale)| (integer, scale > 0.0)).all(|end| end == (7, true) || end == (-8, false)));
    }
    // Scales that f16 does not have, and larger integers, take bytes.
    let of = |integer: i8, scale: f32| PackedMatrix::of_blocks(&[integer], &[scale], [1, 1], -8..=7);
    let four = of(3, 0.5);
    assert_eq!(four.changed(&of(4, 0.5)), Some(1));
    assert_eq!(four.changed(&of(3, 0.1)), None);
    assert_eq!(of(9, 0.5).column(0).next(), Some((9, 0.5)));
}
