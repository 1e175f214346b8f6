//! Cross-entropy by member.

use super::{distance, implementations, inputs, values};
use crate::testing::reference::floats::rows::cross_entropy;
use burn::tensor::{Int, Tensor, TensorData};

/// Members, rows of a member, classes.
const CASES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (2, 3, 10),
    (17, 64, 10),
    (4, 16, 17),
    (3, 33, 257),
    (1, 257, 3),
    (255, 1, 17),
    (3, 1, 2500),
    (2, 17, 255),
];

#[test]
fn equals_oracle() {
    for (members, rows, classes) in CASES {
        for scale in [1.0, 30.0] {
            let logits: Vec<f64> =
                inputs(members * rows * classes, 5).iter().map(|v| (v * scale) as f32 as f64).collect();
            let targets: Vec<i64> = (0..rows).map(|i| ((i * 7 + 3) % classes) as i64).collect();
            let next: Vec<i64> = targets.iter().map(|target| (target + 1) % classes as i64).collect();
            // A row alone is a member of one row.
            let row = |at: usize| {
                cross_entropy(&logits[at * classes..(at + 1) * classes], &targets[at % rows..at % rows + 1], classes)
            };
            let all_rows: Vec<f64> = (0..members * rows).flat_map(row).collect();
            let (expected, wrong) = (cross_entropy(&logits, &targets, classes), cross_entropy(&logits, &next, classes));
            for on in implementations() {
                let data = TensorData::new(targets.clone(), [rows]);
                let targets = Tensor::<1, Int>::from_data(data, &on.device);
                let logits = on.tensor(&logits, [members * rows, classes]);
                let by_row = values(on.row_cross_entropy(logits.clone(), targets.clone(), members));
                let found = values(on.member_cross_entropy(logits, targets, members));
                assert!(distance(&found, &expected, 1) < 1.0, "{}: {found:?} {expected:?}", on.name);
                assert!(distance(&by_row, &all_rows, 1) < 1.0, "{}: {by_row:?} {all_rows:?}", on.name);
                assert!(classes == 1 || distance(&found, &wrong, 1) > 100.0, "canary: {}", on.name);
            }
        }
    }
}

#[test]
fn strided_logits() {
    let (members, rows, classes) = (3, 4, 17);
    let logits = inputs(members * rows * classes, 8); // [classes, members · rows]
    for on in implementations() {
        let targets = || Tensor::<1, Int>::from_ints([1, 16, 3, 0], &on.device);
        let strided = on.tensor(&logits, [classes, members * rows]).transpose();
        let contiguous = values(strided.clone()).into_iter().map(f64::from).collect::<Vec<_>>();
        let contiguous = on.tensor(&contiguous, [members * rows, classes]);
        let losses = |logits| values(on.member_cross_entropy(logits, targets(), members));
        let expected: Vec<f64> = losses(strided).into_iter().map(f64::from).collect();
        assert!(distance(&losses(contiguous), &expected, 1) < 1.0, "{}", on.name);
        let other = losses(on.tensor(&logits, [members * rows, classes]));
        assert!(distance(&other, &expected, 1) > 100.0, "canary: {}", on.name);
    }
}

/// NaN logits give NaN for their member only: its fitness is then ranked last.
#[test]
fn nan_stays_with_its_member() {
    for on in implementations() {
        let logits = on.tensor(&[1.0, 2.0, f64::NAN, 0.0, 3.0, 1.0], [3, 2]);
        let targets = Tensor::<1, Int>::from_ints([1], &on.device);
        let found = values(on.member_cross_entropy(logits, targets, 3));
        assert!(found[0].is_finite() && found[1].is_nan() && found[2].is_finite(), "{}: {found:?}", on.name);
    }
}

#[test]
#[should_panic(expected = "logits [6, 10] do not fit 4 members with targets [2]")]
fn refuses_other_rows() {
    let on = &implementations()[0];
    let targets = Tensor::<1, Int>::from_ints([1, 2], &on.device);
    on.member_cross_entropy(Tensor::zeros([6, 10], &on.device), targets, 4);
}

#[cfg(feature = "flex")]
#[test]
#[should_panic(expected = "target 10 is not one of 10 classes")]
fn refuses_other_class() {
    let on = super::host();
    let targets = Tensor::<1, Int>::from_ints([10], &on.device);
    on.member_cross_entropy(Tensor::zeros([2, 10], &on.device), targets, 2);
}
