//! Products, plain and perturbed: `nano_matmul.npz`.

use super::{assert_differs, assert_equal, integers, noise, of_pairs};
use crate::devices;
use crate::loader::{Array, Golden};
use burn::tensor::Device;
use eggroll::core::ops::integer::{Rounding, linear};

/// Cases of the file with their rank.
const CASES: [(&str, usize); 5] = [("sq", 1), ("up", 1), ("down", 1), ("odd", 1), ("r4", 4)];
const MEMBERS: usize = 4;

struct MatmulCase {
    golden: Golden,
    name: &'static str,
    rank: usize,
}

impl MatmulCase {
    fn array(&self, name: &str) -> &Array {
        self.golden.array(&format!("{}_{name}", self.name))
    }

    fn expected(&self, sigma_shift: u32) -> &[f64] {
        &self.array(&format!("mm_s{sigma_shift}")).values
    }

    /// Outputs of all members, under the noise of pairs in this order.
    fn found(&self, sigma_shift: u32, order: [usize; 2], device: &Device) -> Vec<f64> {
        let (x, w) = (self.array("X"), self.array("W").flipped());
        let held = of_pairs(self.array("noise")).select(&order).integer_factors(w.shape[0]);
        let x = x.integers::<2>(device).repeat_dim(0, MEMBERS); // every member sees the same rows
        let noise = Some(noise(&held, self.rank, sigma_shift, device));
        integers(linear(x, w.integers(device), noise, None, false, Rounding::Floor))
    }
}

fn cases() -> impl Iterator<Item = MatmulCase> {
    CASES.into_iter().map(|(name, rank)| MatmulCase { golden: Golden::open("nano_matmul.npz"), name, rank })
}

#[test]
fn plain() {
    for case in cases() {
        for device in devices() {
            let (x, w) = (case.array("X").integers::<2>(&device), case.array("W").flipped().integers(&device));
            let expected = case.golden.values(&format!("{}_base", case.name));
            assert_equal(
                case.name,
                &integers(linear(x.clone(), w.clone(), None, None, false, Rounding::Floor)),
                expected,
            );
            assert_differs(case.name, &integers(linear(x, -w, None, None, false, Rounding::Floor)), expected);
        }
    }
}

#[test]
fn perturbed() {
    for case in cases() {
        assert_eq!(case.array("sign").values, [1.0, -1.0, 1.0, -1.0]);
        for device in devices() {
            for sigma_shift in [0, 4] {
                let what = format!("{}, sigma shift {sigma_shift}", case.name);
                let expected = case.expected(sigma_shift);
                assert_equal(&what, &case.found(sigma_shift, [0, 1], &device), expected);
                assert_differs(&what, &case.found(sigma_shift, [1, 0], &device), expected);
                assert_differs(&what, &case.found(sigma_shift + 1, [0, 1], &device), expected);
            }
        }
    }
}
