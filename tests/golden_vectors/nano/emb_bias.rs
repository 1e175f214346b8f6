//! Embeddings and vectors, plain and perturbed: `nano_emb_bias.npz`.

use super::{assert_differs, assert_equal, integers, noise, of_pairs};
use crate::devices;
use crate::loader::Golden;
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::ops::integer::{Rounding, Vector, embedding, integer_type, norm};

const MEMBERS: usize = 4;

#[test]
fn plain_embedding() {
    let golden = Golden::open("nano_emb_bias.npz");
    for device in devices() {
        let table = golden.array("E").integers::<2>(&device);
        let found = |tokens| integers(embedding(tokens, table.clone(), None, None, Rounding::Floor));
        let tokens = golden.array("tokens").tokens::<1>(&device);
        assert_equal("embedding", &found(tokens.clone()), golden.values("base"));
        assert_differs("other tokens", &found(tokens.flip([0])), golden.values("base"));
    }
}

/// Rows of all members, under the noise of pairs in this order.
fn perturbed_rows(golden: &Golden, sigma_shift: u32, order: [usize; 2], device: &Device) -> Vec<f64> {
    let table = golden.array("E");
    let held = of_pairs(golden.array("noise")).select(&order).integer_embedding_factors(table.shape[1]);
    let tokens = golden.array("tokens").tokens::<1>(device).repeat_dim(0, MEMBERS);
    let noise = Some(noise(&held, 1, sigma_shift, device));
    integers(embedding(tokens, table.integers(device), noise, None, Rounding::Floor))
}

#[test]
fn perturbed_embedding() {
    let golden = Golden::open("nano_emb_bias.npz");
    assert_eq!(golden.values("sign"), [1.0, -1.0, 1.0, -1.0]);
    for device in devices() {
        for sigma_shift in [0, 4] {
            let (what, expected) =
                (format!("sigma shift {sigma_shift}"), golden.values(&format!("emb_s{sigma_shift}")));
            assert_equal(&what, &perturbed_rows(&golden, sigma_shift, [0, 1], &device), expected);
            assert_differs(&what, &perturbed_rows(&golden, sigma_shift, [1, 0], &device), expected);
            assert_differs(&what, &perturbed_rows(&golden, sigma_shift + 1, [0, 1], &device), expected);
        }
    }
}

/// The vector of all members. A norm of rows of ones is its gain, as the member sees it.
fn perturbed_vector(golden: &Golden, sigma_shift: u32, order: [usize; 2], device: &Device) -> Vec<f64> {
    let bias = golden.array("bias");
    let held = of_pairs(golden.array("bias_noise")).select(&order).integer_vector();
    let ones = Tensor::<2, Int>::ones([MEMBERS, bias.shape[0]], (device, integer_type(device)));
    let gain = Vector { values: bias.integers(device), noise: Some(noise(&held, 0, sigma_shift, device)) };
    integers(norm(ones, gain, None, Rounding::Floor))
}

#[test]
fn vectors() {
    let golden = Golden::open("nano_emb_bias.npz");
    for device in devices() {
        for sigma_shift in [0, 4] {
            let expected = golden.values(&format!("bias_s{sigma_shift}"));
            let what = format!("vector, sigma shift {sigma_shift}");
            assert_equal(&what, &perturbed_vector(&golden, sigma_shift, [0, 1], &device), expected);
            assert_differs(&what, &perturbed_vector(&golden, sigma_shift, [1, 0], &device), expected);
            assert_differs(&what, &perturbed_vector(&golden, sigma_shift + 1, [0, 1], &device), expected);
        }
    }
}
