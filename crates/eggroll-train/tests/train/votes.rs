//! How many integer weights random fitness moves: the share that the threshold is made for, at every rank, with and without ties.

use crate::support::bytes;
use burn::tensor::Device;
use eggroll_core::QEggrollConfig;
use eggroll_core::integer::{inverse_normal, threshold};
use eggroll_core::rng::philox::philox4x32;
use eggroll_nn::integer::LinearConfig;
use eggroll_train::{EvolutionStrategyConfig, Fitness};

const WIDTH: usize = 64;
const PAIRS: usize = 1024;
const GENERATIONS: u32 = 16;
/// Mean square of a draw, `trunc(16·N(0, 1))`.
const DRAW: f64 = 243.563024;

/// The share of weights that a generation of random fitness moves, every second pair tied or none.
fn moved(config: &QEggrollConfig, ties: bool) -> f64 {
    let mut model = LinearConfig::new(WIDTH, WIDTH).init(&Device::flex());
    let config = EvolutionStrategyConfig::integer(config.clone()).with_population_size(2 * PAIRS).with_seed(8);
    let mut strategy = config.init(&model);
    let mut count = 0;
    for generation in 0..GENERATIONS {
        let scores = (0..PAIRS as u32).flat_map(|pair| {
            let plus = (philox4x32([pair, generation, 0, 0], [3; 2])[0] & 1) as i32;
            if ties && pair % 2 == 1 { [0; 2] } else { [plus, 1 - plus] }
        });
        let before = bytes(&model);
        strategy.tell(&mut model, strategy.ask(), Fitness::from(scores.collect::<Vec<_>>())).expect("a generation");
        count += before.iter().zip(bytes(&model)).filter(|(before, after)| **before != *after).count();
    }
    count as f64 / trials()
}

fn trials() -> f64 {
    (GENERATIONS as usize * WIDTH * WIDTH) as f64
}

/// The probability of a normal number that far from 0, by bisection.
fn beyond(deviations: f64) -> f64 {
    let halved = |(low, high): (f64, f64), _| {
        let middle = 0.5 * (low + high);
        if inverse_normal(1.0 - 0.5 * middle) > deviations { (middle, high) } else { (low, middle) }
    };
    (0..60).fold((0.0, 1.0), halved).0
}

#[test]
fn random_fitness_moves_the_nominal_share() {
    for (nominal, rank, ties) in [0.0625, 0.01]
        .into_iter()
        .flat_map(|share| [1, 2, 4].map(|rank| (share, rank)))
        .flat_map(|(share, rank)| [false, true].map(|ties| (share, rank, ties)))
    {
        let config = QEggrollConfig::new().with_threshold(nominal, 1).with_rank(rank);
        let products = rank * if ties { PAIRS / 2 } else { PAIRS };
        // The threshold, the root and the draws are integers, all rounded down.
        let limit = 16.0 * f64::from(threshold(nominal, 1, 0)) * products.isqrt() as f64;
        let expected = beyond(limit / (DRAW * (products as f64).sqrt()));
        let deviation = (expected * (1.0 - expected) / trials()).sqrt();
        let off = |found: f64| (found - expected).abs() / deviation;
        let what = format!("rank {rank}, ties {ties}, nominal {nominal}");

        let found = moved(&config, ties);
        assert!(off(found) < 4.0, "{what}: {found}, expected {expected} ± {deviation}");
        assert!((0.6..1.1).contains(&(found / nominal)), "{what}: {found}");
        let reference = moved(&config.with_reference_limit(true), ties);
        match products == PAIRS {
            // Half of the pairs at twice the rank is what the reference's rule is right for, too.
            true => assert_eq!(reference, found, "{what}"),
            false => assert!(off(reference) > 8.0, "canary: {what}: {reference}, expected {expected} ± {deviation}"),
        }
    }
}
