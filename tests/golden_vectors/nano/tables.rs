//! Powers, logarithms, quotients and thresholds: `nano_tables.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::{Array, Golden};
use eggroll::core::integer::{exp2_sixteenths, log2_sixteenths, threshold};
use eggroll::core::ops::integer::{Rounding, Vector, linear, norm};
use std::collections::BTreeMap;

#[test]
fn powers() {
    let golden = Golden::open("nano_tables.npz");
    let found: Vec<f64> = (0..256).map(|q| exp2_sixteenths(q).into()).collect();
    assert_equal("EXP2TABLE", &found, golden.values("EXP2TABLE"));
    let rounded: Vec<f64> = (0..256).map(|q| (f64::from(q) / 16.0).exp2() * 16.0).map(f64::round).collect();
    assert_differs("rounded", &rounded, golden.values("EXP2TABLE"));
}

/// Entry `i` of the table is that of a sum of `i + 1`.
#[test]
fn logarithms() {
    let golden = Golden::open("nano_tables.npz");
    let indices = golden.values("log2_idx");
    let of = |offset: f64| -> Vec<f64> {
        indices.iter().map(|index| log2_sixteenths((index + offset) as u32).into()).collect()
    };
    assert_equal("LOG2TABLE", &of(1.0), golden.values("log2_val"));
    assert_differs("next entries", &of(2.0), golden.values("log2_val"));
}

#[test]
fn thresholds() {
    let golden = Golden::open("nano_tables.npz");
    for alpha in [0.0625, 0.125, 0.25, 1.0, 3.0, 4.0, 5.0] {
        let of = |alpha| -> Vec<f64> { (0..1000).map(|t| threshold(alpha, 1000, t).into()).collect() };
        let expected = golden.values(&format!("thr_alpha_{alpha}"));
        assert_equal(&format!("alpha {alpha}"), &of(alpha), expected);
        assert_differs(&format!("half of alpha {alpha}"), &of(alpha / 2.0), expected);
    }
}

/// Samples of the division table: its row, which is the divisor, the numerator and the quotient.
fn quotients(golden: &Golden) -> BTreeMap<usize, Vec<(i32, f64)>> {
    let column = |name: &str| golden.values(name).to_vec();
    let zero = vec![0.0; golden.values("div_row0_num").len()];
    let divisors = [column("div_row"), zero].concat();
    let numerators = [column("div_num"), column("div_row0_num")].concat();
    let values = [column("div_val"), column("div_row0_val")].concat();
    let mut rows = BTreeMap::<usize, Vec<(i32, f64)>>::new();
    for ((divisor, numerator), value) in divisors.iter().zip(numerators).zip(values) {
        rows.entry(*divisor as usize).or_default().push((numerator as i32, value));
    }
    assert_eq!(rows.len(), 256);
    rows
}

/// `d_input` values of `input` and a column of weights whose product is `sum`, if int8 weights can have it.
fn column(input: &[i32], sum: i32) -> Option<Vec<i32>> {
    let (first, rest) = (sum.rem_euclid(127), sum.div_euclid(127));
    let mut column = vec![first];
    let mut left = rest;
    for _ in 1..input.len() {
        let part = left.clamp(-127, 127);
        column.push(part);
        left -= part;
    }
    (left == 0).then_some(column)
}

/// A product over `d` inputs is divided by `16·⌊√d⌋`: with `d` the largest of its root and a sum of 16 numerators, every
/// sample of a divisor comes out, but for quotients far beyond ±127 that no int8 operands have.
#[test]
fn quotients_of_products() {
    let golden = Golden::open("nano_tables.npz");
    let rows = quotients(&golden);
    let mut reached = 0;
    for (divisor, samples) in rows.into_iter().filter(|(divisor, _)| *divisor > 0) {
        let mut input = vec![127; divisor * (divisor + 2)];
        input[0] = 1;
        let (mut columns, mut expected) = (Vec::new(), Vec::new());
        for (numerator, value) in samples {
            match column(&input, 16 * numerator) {
                Some(column) => {
                    columns.push(column);
                    expected.push(value);
                }
                None => assert_eq!(value, f64::from(127 * numerator.signum()), "{numerator} / {divisor}"),
            }
        }
        let flat = |rows: &[Vec<i32>]| rows.concat().into_iter().map(f64::from).collect();
        let x = Array { shape: vec![1, input.len()], values: flat(&[input]) };
        let w = Array { shape: vec![columns.len(), x.values.len()], values: flat(&columns) };
        for device in devices() {
            let x = x.integers::<2>(&device);
            let found = |x| integers(linear(x, w.flipped().integers(&device), None, None, false, Rounding::Floor));
            assert_equal(&format!("divisor {divisor}"), &found(x.clone()), &expected);
            assert_differs(&format!("divisor {divisor}, negated"), &found(-x), &expected);
        }
        reached += expected.len();
    }
    assert!(reached > 4000, "{reached}");
}

/// The weights of a layer norm that has a weight of every value.
const WEIGHTS: usize = 255;

/// A row of mean magnitude `mean` with `x` at `at`.
fn row(mean: i32, x: i32, at: usize) -> Vec<f64> {
    let mut left = mean * WEIGHTS as i32 - x.abs();
    let mut row = vec![0; WEIGHTS];
    for value in &mut row {
        *value = left.clamp(0, 127);
        left -= *value;
    }
    row.swap(at, WEIGHTS - 1);
    assert!(left <= 0 && row[at] == 0, "a mean of {mean} has room");
    row[at] = x;
    row.into_iter().map(f64::from).collect()
}

/// A layer norm divides products `x·w` by the mean magnitude, which may be 0: those samples that are such products.
#[test]
fn quotients_of_layer_norm() {
    let golden = Golden::open("nano_tables.npz");
    let (mut rows, mut places, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (mean, samples) in quotients(&golden).range(..127) {
        for (numerator, value) in samples {
            let factor = |w: &i32| *w != 0 && numerator % w == 0 && (numerator / w).abs() <= 127;
            let Some(w) = (-127..=127).rev().find(factor) else {
                assert!(*mean > 0 || *value == -2.0, "{numerator} / 0");
                continue;
            };
            let at = (w + 127) as usize;
            rows.push(row(*mean as i32, numerator / w, at));
            places.push(rows.len() * WEIGHTS - WEIGHTS + at);
            expected.push(*value);
        }
    }
    assert!(expected.len() > 300 && expected.contains(&-2.0) && expected.contains(&-1.0), "{}", expected.len());
    let weight = Array { shape: vec![WEIGHTS], values: (-127..=127).map(f64::from).collect() };
    let x = Array { shape: vec![rows.len(), WEIGHTS], values: rows.concat() };
    let plus_one = Array { values: weight.values.iter().map(|w| (w + 1.0).min(127.0)).collect(), ..weight.clone() };
    for device in devices() {
        let found = |weight: &Array| -> Vec<f64> {
            let y = {
                let gain = Vector { values: weight.integers(&device), noise: None };
                integers(norm(x.integers(&device), gain, None, Rounding::Floor))
            };
            places.iter().map(|place| y[*place]).collect()
        };
        assert_equal("layer norm", &found(&weight), &expected);
        assert_differs("other weights", &found(&plus_one), &expected);
    }
}

#[test]
fn columns_have_their_sum() {
    let input = [1, 127, 127];
    for sum in [0, 1, -1, 16_000, -16_000, 32_000] {
        let column = column(&input, sum).expect("small");
        assert_eq!(column.iter().zip(input).map(|(w, x)| w * x).sum::<i32>(), sum);
    }
    assert!(column(&input, 33_000).is_none());
}
