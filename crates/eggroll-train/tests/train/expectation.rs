//! What estimates are in expectation, within five standard errors.

use crate::support::{layer, sines};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig};
use eggroll_nn::Linear;
use eggroll_train::*;

const SHAPE: [usize; 2] = [3, 2];

fn start() -> Linear {
    Linear { bias: None, ..layer(SHAPE[0], SHAPE[1]) }
}

fn values(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Mean and standard error of the estimates of a weight, over many seeds, for a fitness that is a function of the members' weights,
/// `[members · 3, 2]`.
fn estimates(
    noiser: NoiserConfig,
    sigma: f64,
    fitness: impl Fn(Tensor<2>, &MemberChunk) -> Tensor<1> + Sync,
) -> Vec<(f64, f64)> {
    const ROUNDS: u64 = 300;
    let (layer, x) = (start(), Tensor::<2>::eye(SHAPE[0], &Device::flex()));
    let config = EvolutionStrategyConfig::new(noiser, SgdConfig::new())
        .with_population_size(128)
        .with_sigma(sigma)
        .with_shaping(FitnessShaping::Raw)
        .with_gradient_scale(GradientScale::ScoreFunction);
    let mut sums = vec![(0.0, 0.0); SHAPE[0] * SHAPE[1]];
    for seed in 0..ROUNDS {
        let strategy = config.clone().with_seed(seed).init(&layer);
        let population = strategy.ask();
        let scores = population.evaluate(|members| fitness(layer.forward_shared(x.clone()), members));
        let estimate = strategy.gradient(&layer, &population, &scores).expect("belongs together").expect("not equal");
        let estimate = values(estimate.get::<2>(layer.weight.id).expect("an estimate"));
        sums.iter_mut().zip(estimate).for_each(|((sum, squares), g)| {
            *sum += g / ROUNDS as f64;
            *squares += g * g / ROUNDS as f64;
        });
    }
    sums.into_iter().map(|(mean, square)| (mean, ((square - mean * mean) / ROUNDS as f64).sqrt())).collect()
}

fn within(found: &[(f64, f64)], expected: &[f64]) -> bool {
    found.iter().zip(expected).all(|((mean, error), expected)| (mean - expected).abs() < 5.0 * error)
}

/// EGGROLL with each distribution of noise.
fn eggroll(rank: usize) -> [NoiserConfig; 2] {
    [NoiseDistribution::Normal, NoiseDistribution::Rademacher]
        .map(|distribution| EggrollConfig::new().with_rank(rank).with_distribution(distribution).into())
}

fn open_es() -> [NoiserConfig; 2] {
    [NoiseDistribution::Normal, NoiseDistribution::Rademacher]
        .map(|distribution| OpenEsConfig::new().with_distribution(distribution).into())
}

/// Every noise gives the gradient of a quadratic.
#[test]
fn of_a_quadratic_the_gradient() {
    let target = sines(18).slice(12..18).reshape(SHAPE);
    // Fitness −½·|W − target|²: ascent direction target − W, loss gradient W − target.
    let expected = values(start().weight.val() - target.clone());
    let opposite: Vec<f64> = expected.iter().map(|g| -g).collect();
    for noiser in eggroll(1).into_iter().chain(eggroll(4)).chain(open_es()) {
        let found = estimates(noiser.clone(), 0.1, |weight, members| {
            members.mean((weight - members.repeat(target.clone())).square()) * (-0.5 * 6.0)
        });
        assert!(within(&found, &expected), "{noiser:?}: {found:?}, expected {expected:?}");
        assert!(!within(&found, &opposite), "canary: {noiser:?}");
    }
}

/// Of the fitness `ΣW³`, smoothed by normal noise, the gradient is `3W² + 3σ²`. An estimate has `3W² + m₄·σ²`, with the fourth moment
/// `m₄` of a value of the noise: 3 for dense normals only, and `3 + 6/r` for normals of rank `r`.
#[test]
fn of_a_cubic_only_dense_normals_have_the_smoothed_gradient() {
    let sigma = 0.5;
    let loss_gradient = |moment: f64| -> Vec<f64> {
        values(start().weight.val()).into_iter().map(|w| -(3.0 * w * w + moment * sigma * sigma)).collect()
    };
    let [dense, dense_signs] = open_es();
    let [rank_1, rank_1_signs] = eggroll(1);
    let [rank_4, _] = eggroll(4);
    for (noiser, moment) in [(dense, 3.0), (rank_1, 9.0), (rank_4, 4.5), (dense_signs, 1.0), (rank_1_signs, 1.0)] {
        let found = estimates(noiser.clone(), sigma, |weight, members| members.sum(weight.clone().square() * weight));
        let expected = loss_gradient(moment);
        assert!(within(&found, &expected), "{noiser:?}: {found:?}, expected {expected:?}");
        assert_eq!(within(&found, &loss_gradient(3.0)), moment == 3.0, "{noiser:?}: {found:?}");
    }
}
