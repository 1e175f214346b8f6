//! Signs of pairs: `nano_fitness.npz`.
//!
//! `slow`, by a rule with a float square root that the library does not have, is not compared.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::Golden;
use burn::module::{Param, ParamId};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::integer::Votes;
use eggroll::core::ops::integer::{integer_type, noise, update};
use eggroll::core::{NoiseKey, PairRange, QEggrollConfig};
use eggroll::nn::integer::LayerNorm;
use eggroll::train::{EvolutionStrategyConfig, FitnessShaping, fold_pairs};

const PAIRS: usize = 32;
const WIDTH: usize = 40;
const SEED: u64 = 11;

#[test]
fn signs_of_pairs() {
    let golden = Golden::open("nano_fitness.npz");
    let signs = |scores: &[f64]| fold_pairs(&FitnessShaping::PairSign.shape(scores));
    assert_equal("signs", &signs(golden.values("raw")), golden.values("fast"));
    let negated: Vec<f64> = golden.values("raw").iter().map(|score| -score).collect();
    assert_differs("signs of the negated", &signs(&negated), golden.values("fast"));
}

/// A vector after a generation with this fitness of all members; the threshold is 0.
fn generation(fitness: &[f64], device: &Device) -> Vec<f64> {
    let weight = Tensor::zeros([WIDTH], (device, integer_type(device)));
    let layer = LayerNorm { weight: Param::initialized(ParamId::new(), weight) };
    let config =
        EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(2 * PAIRS).with_seed(SEED);
    let mut strategy = config.init(&layer);
    let population = strategy.ask();
    let fitness: Vec<i32> = fitness.iter().map(|score| *score as i32).collect();
    let fitness = population.evaluate(|members| {
        let x = Tensor::<2, Int>::ones([1, WIDTH], (device, integer_type(device)));
        layer.forward(members.repeat(x));
        let first = members.first();
        Tensor::<1, Int>::from_ints(&fitness[first..first + members.count()], device)
    });
    let mut layer = layer;
    strategy.tell(&mut layer, population, fitness).expect("a generation");
    integers(layer.weight.val())
}

/// A generation with the raw fitness is the update by the golden signs.
#[test]
fn a_generation_votes_by_these_signs() {
    let golden = Golden::open("nano_fitness.npz");
    for device in devices() {
        let noise = noise(NoiseKey::new(SEED, 0, 0), PairRange::new(0, PAIRS as u32), 2 * WIDTH, &device);
        let weight = Tensor::<1, Int>::zeros([WIDTH], (&device, integer_type(&device)));
        let signs = golden.array("fast").integers::<1>(&device);
        let expected = integers(update(weight, noise, signs, 0, Votes::Values, 0));
        let raw = golden.values("raw");
        assert_equal("a generation", &generation(raw, &device), &expected);
        let swapped: Vec<f64> = raw.iter().rev().copied().collect();
        assert_differs("a generation of other fitness", &generation(&swapped, &device), &expected);
    }
}
