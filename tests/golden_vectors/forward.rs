//! Single perturbed products: `jax_forward.npz`.

use crate::compare::{ROUNDING, assert_close, assert_differs, values};
use crate::devices;
use crate::loader::{Golden, sparse_entries};
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use eggroll::core::ops::explicit::{Factors, dense_linear, low_rank_linear, perturbed_vector};
use eggroll::core::ops::{self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource};
use eggroll::core::{NoiseKey, PairRange};
use eggroll::nn::Linear;

const MEMBERS: usize = 8;
const D_INPUT: usize = 10;
const RANKS: [usize; 2] = [1, 4];

fn open() -> Golden {
    Golden::open("jax_forward.npz")
}

/// The scale that the library gives to low-rank noise.
fn scale(rank: usize, sigma: f64) -> f32 {
    LowRankNoise::new(NoiseKey::new(0, 0, 0), rank, sigma).scale
}

/// A vector as one row, or rows as they are.
fn rows(golden: &Golden, name: &str, device: &Device) -> Tensor<2> {
    let array = golden.array(name);
    match array.shape.len() {
        1 => array.tensor::<1>(device).unsqueeze(),
        _ => array.tensor(device),
    }
}

/// The pairs' noise, pair `q` having that of pair `q + 1`.
fn next_pair<const D: usize>(noise: Tensor<D>) -> Tensor<D> {
    let pairs = noise.dims()[0];
    Tensor::cat(vec![noise.clone().narrow(0, 1, pairs - 1), noise.narrow(0, 0, 1)], 0)
}

/// One perturbed product of the file, of any noise.
struct PerturbedProduct<'a> {
    golden: &'a Golden,
    /// Name of the input.
    x: &'a str,
    /// Name of the result.
    y: String,
}

impl PerturbedProduct<'_> {
    /// Compares `apply(x, scale, wrong pair, rows)`, and checks that it notices wrong noise.
    #[track_caller]
    fn check(&self, scale: f32, device: &Device, apply: impl Fn(Tensor<2>, f32, bool, InputRows) -> Tensor<2>) {
        let expected = self.golden.values(&self.y);
        let x = rows(self.golden, self.x, device);
        let apply = |x: &Tensor<2>, scale, wrong, input| values(apply(x.clone(), scale, wrong, input));
        let y = &self.y;
        assert_close(y, &apply(&x, scale, false, InputRows::Shared), expected, ROUNDING);
        let each = x.clone().repeat_dim(0, MEMBERS); // [members · rows, d_input]
        assert_close(y, &apply(&each, scale, false, InputRows::PerMember), expected, ROUNDING);
        for (input, x) in [(InputRows::Shared, &x), (InputRows::PerMember, &each)] {
            let canary = |wrong| format!("{y}, {input:?}, {wrong}");
            assert_differs(&canary("wrong sign"), &apply(x, -scale, false, input), expected, ROUNDING);
            assert_differs(&canary("another scale"), &apply(x, 0.99 * scale, false, input), expected, ROUNDING);
            assert_differs(&canary("another pair"), &apply(x, scale, true, input), expected, ROUNDING);
        }
    }
}

/// `x·W` for a vector and a matrix, and `x·Wᵀ`: the same operation on the transposed weight and swapped factors.
#[test]
fn low_rank_products() {
    let golden = open();
    for device in devices() {
        for rank in RANKS {
            let weight = golden.array("W").flipped().tensor::<2>(&device);
            let Factors { b, a } = golden.array(&format!("noise_r{rank}")).factors(D_INPUT, &device);
            let scale = scale(rank, golden.scalar("sigma"));
            let factors = |wrong, b: &Tensor<3>, a: &Tensor<3>| match wrong {
                false => Factors { b: b.clone(), a: a.clone() },
                true => Factors { b: next_pair(b.clone()), a: next_pair(a.clone()) },
            };
            for x in ["x", "X"] {
                let product = PerturbedProduct { golden: &golden, x, y: format!("mm_{x}_r{rank}") };
                product.check(scale, &device, |x, scale, wrong, input| {
                    low_rank_linear(x, weight.clone(), factors(wrong, &b, &a), scale, input)
                });
            }
            for x in ["xt", "Xt"] {
                let product = PerturbedProduct { golden: &golden, x, y: format!("Tmm_{x}_r{rank}") };
                product.check(scale, &device, |x, scale, wrong, input| {
                    low_rank_linear(x, weight.clone().transpose(), factors(wrong, &a, &b), scale, input)
                });
            }
        }
    }
}

#[test]
fn dense_products() {
    let golden = open();
    for device in devices() {
        let weight = golden.array("W").flipped().tensor::<2>(&device);
        let epsilon = golden.array("noise_full").flipped().tensor::<3>(&device); // [pairs, d_input, d_output]
        let noise = |wrong, epsilon: &Tensor<3>| if wrong { next_pair(epsilon.clone()) } else { epsilon.clone() };
        let scale = golden.scalar("sigma") as f32;
        let product = PerturbedProduct { golden: &golden, x: "X", y: "openes_mm_X".into() };
        product.check(scale, &device, |x, scale, wrong, input| {
            dense_linear(x, weight.clone(), noise(wrong, &epsilon), scale, input)
        });
        let transposed = epsilon.clone().swap_dims(1, 2);
        let product = PerturbedProduct { golden: &golden, x: "Xt", y: "openes_Tmm_Xt".into() };
        product.check(scale, &device, |x, scale, wrong, input| {
            dense_linear(x, weight.clone().transpose(), noise(wrong, &transposed), scale, input)
        });
    }
}

/// Sign and σ are in the values; both members of a pair share places.
#[test]
fn sparse_product() {
    let golden = open();
    for device in devices() {
        let weight = golden.array("W").flipped().tensor::<2>(&device);
        let product = PerturbedProduct { golden: &golden, x: "x", y: "sparse_mm_x".into() };
        product.check(1.0, &device, |x, scale, wrong, input| {
            let pairs = if wrong { [2, 4, 6, 0] } else { [0, 2, 4, 6] };
            let base = match input {
                InputRows::PerMember => x.clone().matmul(weight.clone()),
                InputRows::Shared => x.clone().matmul(weight.clone()).repeat_dim(0, MEMBERS),
            };
            base + sparse_entries(&golden, &pairs, &device).product(x, scale, 6, input)
        });
    }
}

/// In groups of four members the first two are baselines: the library's own operations, on recorded noise.
#[test]
fn baselines() {
    let golden = open();
    let (sigma, pairs) = (golden.scalar("sigma"), PairRange::new(0, MEMBERS as u32 / 2));
    for device in devices() {
        let weight = golden.array("W").flipped().tensor::<2>(&device);
        let Factors { b, a } = golden.array("noise_r4").factors(D_INPUT, &device);
        let factors = Tensor::cat(vec![b.flatten(1, 2), a.flatten(1, 2)], 1);
        let held = |noise| NoiseSource::Cached { noise, first_pair: 0 };
        let x = rows(&golden, "X", &device);
        let product = |key| {
            let noise = LowRankNoise::new(key, 4, sigma);
            let members = LinearMembers { pairs, input: InputRows::Shared };
            let (x, weight) = (x.clone(), weight.clone());
            values(ops::low_rank_linear(x, weight, LinearBias::None, noise, held(factors.clone()), members))
        };
        let bias = |key| {
            let source = held(golden.array("noise_bias").dense(&device));
            let noise = DenseNoise::new(key, sigma);
            values(ops::perturbed_vector(golden.array("bias").tensor(&device), noise, source, pairs))
        };
        let key = NoiseKey::new(0, 0, 0);
        let (expected, expected_bias) = (golden.values("bs_g4_mm_X_r4"), golden.values("bs_g4_noisy_bias"));
        assert_close("product", &product(key.with_baselines(2)), expected, ROUNDING);
        assert_close("bias", &bias(key.with_baselines(2)), expected_bias, ROUNDING);
        for group in [0, 1, 3] {
            assert_differs("product, other groups", &product(key.with_baselines(group)), expected, ROUNDING);
            assert_differs("bias, other groups", &bias(key.with_baselines(group)), expected_bias, ROUNDING);
        }
    }
}

#[test]
fn perturbed_bias() {
    let golden = open();
    let expected = golden.values("noisy_bias");
    for device in devices() {
        let scale = golden.scalar("sigma") as f32;
        let epsilon = golden.array("noise_bias").dense(&device);
        let bias =
            |epsilon: Tensor<2>, scale| values(perturbed_vector(golden.array("bias").tensor(&device), epsilon, scale));
        assert_close("bias", &bias(epsilon.clone(), scale), expected, ROUNDING);
        assert_differs("bias, wrong sign", &bias(epsilon.clone(), -scale), expected, ROUNDING);
        assert_differs("bias, another pair", &bias(next_pair(epsilon), scale), expected, ROUNDING);
    }
}

/// The reference's factors after sign and scale: ours are `±c·A`, and `B` as drawn.
#[test]
fn scaled_factors() {
    let golden = open();
    for device in devices() {
        for rank in RANKS {
            let Factors { b, a } = golden.array(&format!("noise_r{rank}")).factors(D_INPUT, &device);
            let [pairs, _, d_output] = a.dims();
            let flat = a.swap_dims(1, 2).reshape([pairs, d_output * rank]); // as the file: (out, rank)
            let scaled = |scale| {
                let zero = Tensor::zeros([d_output * rank], &device);
                values(perturbed_vector(zero, flat.clone(), scale))
            };
            let (name, sigma) = (format!("A_r{rank}"), golden.scalar("sigma"));
            let expected = golden.values(&name);
            assert_close(&name, &scaled(scale(rank, sigma)), expected, ROUNDING);
            assert_differs(&name, &scaled(-scale(rank, sigma)), expected, ROUNDING);
            assert_differs(&name, &scaled(scale(rank + 1, sigma)), expected, ROUNDING);
            let b = b.swap_dims(1, 2).reshape([pairs, 1, D_INPUT * rank]).repeat_dim(1, 2); // both members of a pair
            let name = format!("B_r{rank}");
            assert_close(&name, &values(b.clone()), golden.values(&name), ROUNDING);
            assert_differs(&name, &values(next_pair(b)), golden.values(&name), ROUNDING);
        }
    }
}

/// Outside a population eggroll's layer is the plain product.
#[test]
fn unperturbed_layer() {
    let golden = open();
    let expected = golden.values("mm_base_X");
    for device in devices() {
        let weight = golden.array("W").flipped().tensor::<2>(&device);
        let layer = Linear { weight: Param::from_tensor(weight), bias: None };
        let x = rows(&golden, "X", &device);
        assert_close("forward", &values(layer.forward(x.clone())), expected, ROUNDING);
        assert_close("forward_shared", &values(layer.forward_shared(x.clone())), expected, ROUNDING);
        assert_differs("another input", &values(layer.forward(-x)), expected, ROUNDING);
    }
}
