//! Projection onto the span of input rows.

use super::{distance, implementations, inputs, values};
use crate::ops::LowRankNoise;
use crate::rng::key::NoiseKey;
use crate::testing::reference::floats::members::{self as oracle, OracleNoise};
use crate::testing::reference::floats::projection::onto_rows;
use burn::tensor::Tensor;

/// Rows, d_input, d_output.
const CASES: [(usize, usize, usize); 10] = [
    (1, 3, 1),
    (4, 17, 33),
    (64, 100, 10),
    (16, 257, 64),
    (5, 6, 17),
    (17, 255, 3),
    (130, 257, 1),
    (255, 257, 1),
    (33, 40, 2),
    (48, 2100, 1),
];

#[test]
fn equals_oracle() {
    for (rows, d_input, d_output) in CASES {
        let (gradient, mut x) = (inputs(d_input * d_output, 6), inputs(rows * d_input, 7));
        if rows > 3 {
            // A row twice, a row of zeros and a combination: they add nothing.
            x.copy_within(0..d_input, d_input);
            x[2 * d_input..3 * d_input].fill(0.0);
            let last = (rows - 1) * d_input;
            (0..d_input).for_each(|i| x[last + i] = 0.5 * x[i]);
        }
        let expected = onto_rows(&gradient, &x, d_input, d_output);
        for on in implementations() {
            let tensors = (on.tensor(&gradient, [d_input, d_output]), on.tensor(&x, [rows, d_input]));
            let found = values(on.row_projection(tensors.0, tensors.1));
            let off = on.distance(&found, &expected, rows);
            assert!(off < 1.0, "{}, {rows} rows of {d_input}: {off}", on.name);
            assert!(distance(&values(on.tensor(&gradient, [d_input, d_output])), &expected, rows) > 1000.0, "canary");
        }
    }
}

/// What it is for: members on the same rows give the same estimate up to noise that no row sees.
#[test]
fn keeps_what_the_rows_see() {
    let (rows, shape) = (8, [40, 6]);
    let x = inputs(rows * shape[0], 3);
    let noise = LowRankNoise::new(NoiseKey::new(4, 0, 0), 2, 1.0);
    let gradient = oracle::estimate(&inputs(20, 2), OracleNoise::LowRank(noise), 0, shape);
    for on in implementations() {
        let (g, x) = (on.tensor(&gradient, shape), on.tensor(&x, [rows, shape[0]]));
        let projected = on.row_projection(g.clone(), x.clone());
        let seen: Vec<f64> = values(x.clone().matmul(g)).into_iter().map(f64::from).collect();
        assert!(on.distance(&values(x.clone().matmul(projected.clone())), &seen, 400) < 1.0, "{}", on.name);
        let again = values(on.row_projection(projected.clone(), x));
        let once: Vec<f64> = values(projected).into_iter().map(f64::from).collect();
        assert!(on.distance(&again, &once, 40) < 1.0, "{}", on.name);
    }
}

/// Rows that differ little from combinations of others, of all rows before them: the basis stays orthonormal, so that a second
/// projection changes nothing.
#[test]
fn nearly_dependent_rows() {
    let (rows, shape) = (60, [100, 6]);
    let mut x = inputs(rows * shape[0], 3);
    for row in 10..rows {
        for i in 0..shape[0] {
            let others = x[(row - 10) * shape[0] + i] - 0.5 * x[(row / 2) * shape[0] + i];
            x[row * shape[0] + i] = others + 0.002 * x[row * shape[0] + i];
        }
    }
    let gradient = inputs(shape[0] * shape[1], 5);
    for on in implementations() {
        let x = on.tensor(&x, [rows, shape[0]]);
        let projected = on.row_projection(on.tensor(&gradient, shape), x.clone());
        let again = values(on.row_projection(projected.clone(), x));
        let once: Vec<f64> = values(projected).into_iter().map(f64::from).collect();
        let off = on.distance(&again, &once, rows);
        assert!(off < 1.0, "{}: {off}", on.name);
        assert!(distance(&values(on.tensor(&gradient, shape)), &once, rows) > 1000.0, "canary: {}", on.name);
    }
}

#[test]
fn strided_rows() {
    for (rows, [d_input, d_output]) in [(5, [33, 4]), (37, [50, 3])] {
        strided(rows, [d_input, d_output]);
    }
}

fn strided(rows: usize, [d_input, d_output]: [usize; 2]) {
    let (gradient, x) = (inputs(d_input * d_output, 1), inputs(rows * d_input, 2)); // x: [d_input, rows]
    for on in implementations() {
        let gradient = || on.tensor(&gradient, [d_input, d_output]);
        let strided = on.tensor(&x, [d_input, rows]).transpose();
        let contiguous = values(strided.clone()).into_iter().map(f64::from).collect::<Vec<_>>();
        let contiguous = on.tensor(&contiguous, [rows, d_input]);
        let found = values(on.row_projection(gradient(), strided));
        let found: Vec<f64> = found.into_iter().map(f64::from).collect();
        let contiguous = values(on.row_projection(gradient(), contiguous));
        assert!(on.distance(&contiguous, &found, rows) < 1.0, "{}", on.name);
        let other = values(on.row_projection(gradient(), on.tensor(&x, [rows, d_input])));
        assert!(distance(&other, &found, rows) > 1000.0, "canary: {}", on.name);
    }
}

#[test]
fn many_rows_change_nothing() {
    let on = &implementations()[0];
    let gradient = on.tensor(&inputs(12, 1), [4, 3]);
    let same = on.row_projection(gradient.clone(), Tensor::zeros([4, 4], &on.device));
    if !on.portable {
        assert_eq!(values(same), values(gradient));
    }
}

#[test]
#[should_panic(expected = "the input [2, 5] does not fit the gradient [4, 3]")]
fn refuses_other_width() {
    let on = &implementations()[0];
    on.row_projection(Tensor::zeros([4, 3], &on.device), Tensor::zeros([2, 5], &on.device));
}
