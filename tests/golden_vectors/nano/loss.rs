//! Log-likelihoods in sixteenths of a bit: `nano_loss.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::Golden;
use eggroll::core::ops::integer::{Rounding, log_likelihood};

#[test]
fn log_likelihoods() {
    let golden = Golden::open("nano_loss.npz");
    for suffix in ["", "64"] {
        let [logits, targets, expected] =
            ["logits", "target", "ll"].map(|name| golden.array(&format!("{name}{suffix}")));
        let (rows, classes) = (logits.shape[0], logits.shape[1]);
        for device in devices() {
            let targets = targets.tokens::<1>(&device);
            let found = |targets, members| {
                integers(log_likelihood(logits.integers(&device), targets, members, Rounding::Floor))
            };
            let what = format!("{classes} classes");
            assert_equal(&what, &found(targets.clone(), rows), &expected.values);
            assert_equal(&what, &found(targets.clone(), 1), &[expected.values.iter().sum()]);
            assert_differs(&what, &found(targets.flip([0]), rows), &expected.values);
        }
    }
}
