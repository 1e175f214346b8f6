//! Products in bfloat16: of rounded rows with rounded weights.

use super::products::{ROWS, SHAPES, formed, product, wide};
use super::*;
use burn::tensor::bf16;

fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| bf16::from_f32(*value).to_f32()).collect()
}

#[test]
fn equal_a_loop_over_rounded_values() {
    for shape in SHAPES {
        let weight = inputs(shape[0] * shape[1], 1);
        let packed = PackedMatrix::new(&weight, shape, Precision::Bf16);
        for rows in ROWS {
            let x = inputs(rows * shape[0], 2);
            let found = multiply(&packed, &activations(Precision::Bf16, &x, shape[0]), None);
            let away = |x: &[f32], weight: &[f32]| {
                let weight = wide(weight);
                distance(&found, &product(x, |_| &weight, shape), shape[0], TOLERANCE)
            };
            let (rounded, plain) = (away(&rounded(&x), &rounded(&weight)), away(&x, &weight));
            assert!(rounded < 1.0 && plain > 10.0, "{shape:?}, {rows} rows: {rounded}, {plain} of values as they are");
        }
    }
}

/// The noise sees rows and factors as they are.
#[test]
fn noise_is_in_float32() {
    let shape = [193, 64];
    let packed = PackedMatrix::new(&vec![0.0; shape[0] * shape[1]], shape, Precision::Bf16);
    let (factors, rows) = (factors(2, shape, 3), members(9, 3));
    let x = inputs(rows.len() * shape[0], 2);
    let found = multiply(&packed, &activations(Precision::Bf16, &x, shape[0]), Some((&factors, &rows)));
    let weights: Vec<_> = rows.iter().map(|row| formed(&vec![0.0; shape[0] * shape[1]], &factors, *row)).collect();
    let expected = product(&x, |row| &weights[row], shape);
    let away = distance(&found, &expected, shape[0], 10.0 * TOLERANCE);
    assert!(away < 1.0, "{away}");
}

/// A NaN row stays NaN and does not affect other rows, nor do leftovers of an earlier, longer use.
#[test]
fn rows_that_are_no_numbers() {
    let shape = [7, 33];
    let packed = PackedMatrix::new(&inputs(shape[0] * shape[1], 1), shape, Precision::Bf16);
    let mut x = Activations::new(Precision::Bf16);
    x.fill(9, 7, |values| values.fill(f32::NAN));
    let mut values = inputs(3 * 7, 2);
    let alone = multiply(&packed, &activations(Precision::Bf16, &values, 7), None);
    x.fill(3, 7, |to| to.copy_from_slice(&values));
    assert_eq!(bits(&multiply(&packed, &x, None)), bits(&alone));
    values[7..14].fill(f32::NAN);
    let found = multiply(&packed, &activations(Precision::Bf16, &values, 7), None);
    assert!(found[33..66].iter().all(|y| y.is_nan()));
    assert_eq!(bits(&found[..33]), bits(&alone[..33]));
    assert_eq!(bits(&found[66..]), bits(&alone[66..]));
}

/// A canary: weights that differ by less than half a step of the format are the same, others are counted.
#[test]
fn weights_that_change_are_counted() {
    let shape = [7, 33];
    let pack = |weight: &[f32], precision| PackedMatrix::new(weight, shape, precision);
    let weight = vec![1.0; 7 * 33];
    let before = pack(&weight, Precision::Bf16);
    let mut next = weight.clone();
    next[0] += 1.0 / 1024.0;
    assert_eq!(before.changed(&pack(&next, Precision::Bf16)), Some(0));
    next.iter_mut().skip(30).take(40).for_each(|w| *w += 1.0 / 64.0);
    assert_eq!(before.changed(&pack(&next, Precision::Bf16)), Some(40));
    assert_eq!(before.changed(&pack(&next, Precision::Int8)), None);
}
