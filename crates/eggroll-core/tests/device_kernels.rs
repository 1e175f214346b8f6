//! On a device every operation is one kernel of ours, whatever the population, also under Burn's Fusion: the portable
//! defaults would launch none. (A row projection adds two products by Burn.) One test, because the count is that of the whole
//! process.

#![cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]

use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::ops::*;
use eggroll_core::{DeviceName, NoiseDistribution, NoiseKey, counters};

const WIDTH: usize = 24;

fn launches(work: impl FnOnce() -> Tensor<1>) -> u64 {
    let before = counters::kernels();
    // Reading makes a lazy backend run what it has put off.
    let values: Vec<f32> = work().into_data().try_to_vec().expect("an f32 tensor");
    assert!(values.iter().all(|value| value.is_finite()));
    counters::kernels() - before
}

#[test]
fn one_kernel_for_each_operation() {
    let device = DeviceName::of_tests();
    let key = NoiseKey::new(1, 2, 3);
    let signs = key.with_distribution(NoiseDistribution::Rademacher);
    for (pairs, key) in [(2, key), (300, key), (2, signs), (300, signs)] {
        let members = LinearMembers { pairs: PairRange::new(0, pairs), input: InputRows::PerMember };
        let x = Tensor::<2>::ones([2 * pairs as usize, WIDTH], &device);
        let weight = Tensor::<2>::ones([WIDTH, WIDTH], &device);
        let weights = Tensor::<1>::ones([pairs as usize], &device);
        let (low_rank, dense) = (LowRankNoise::new(key, 3, 0.1), DenseNoise::new(key, 0.1));
        let bias = || LinearBias::Perturbed(Tensor::ones([WIDTH], &device), dense, NoiseSource::Drawn);

        let two_layers = launches(|| {
            let h = low_rank_linear(x.clone(), weight.clone(), bias(), low_rank, NoiseSource::Drawn, members);
            low_rank_linear(relu(h * 2.0), weight.clone(), bias(), low_rank, NoiseSource::Drawn, members).flatten(0, 1)
        });
        assert_eq!(two_layers, 2, "{pairs} pairs");
        let dense_layer = launches(|| {
            dense_linear(x.clone(), weight.clone(), bias(), dense, NoiseSource::Drawn, members).flatten(0, 1)
        });
        assert_eq!(dense_layer, 1, "{pairs} pairs");
        let shape = [WIDTH, WIDTH];
        let estimates = launches(|| {
            let low_rank =
                low_rank_estimate(weights.clone(), low_rank, NoiseSource::Drawn, 0, shape, DType::F32).flatten(0, 1);
            low_rank + dense_estimate(weights.clone(), dense, NoiseSource::Drawn, 0, WIDTH * WIDTH, DType::F32)
        });
        assert_eq!(estimates, 2, "{pairs} pairs");
        let noise = launches(|| noise(key, members.pairs, 10, &device, DType::F32).flatten(0, 1));
        assert_eq!(noise, 1, "{pairs} pairs");
        // Operations before and after are Burn's to fuse; ours stands between them.
        let members = members.pairs.members();
        let losses = launches(|| {
            let targets = Tensor::<1, Int>::zeros([3], &device);
            member_cross_entropy(Tensor::<2>::ones([3 * members, 10], &device) * 0.5, targets, members) + 1.0
        });
        assert_eq!(losses, 1, "{pairs} pairs");
        let projected = launches(|| {
            let rows = Tensor::<2>::ones([if pairs == 2 { 2 } else { WIDTH - 1 }, WIDTH], &device);
            (row_projection(weight.clone() * 0.5, rows * 2.0) + 1.0).flatten(0, 1)
        });
        assert_eq!(projected, 1, "{pairs} pairs");
        let panels = launches(|| {
            let (rows, gradient) = (Tensor::<2>::ones([40, 48], &device), Tensor::<2>::ones([48, 3], &device));
            row_projection(gradient, rows).flatten(0, 1)
        });
        // Two panels behind the first, whatever the rows in them.
        assert_eq!(panels, 1 + 2 * 6, "{pairs} pairs");
    }
    let deep = LowRankNoise::new(key, 3, 0.1);
    let double = |shape| Tensor::<2>::ones(shape, (&Device::flex(), DType::F64));
    let members = LinearMembers { pairs: PairRange::new(0, 2), input: InputRows::Shared };
    let portable = launches(|| {
        let y = low_rank_linear(double([2, 4]), double([4, 3]), LinearBias::None, deep, NoiseSource::Drawn, members);
        y.cast(DType::F32).flatten(0, 1)
    });
    assert_eq!(portable, 0, "canary: the portable path counts no kernel");
}
