//! Noise that is held: cached noise gives what drawn noise gives, and a table gives what its runs give as cached noise.

use super::{DISTRIBUTIONS, Implementation, distance, implementations, inputs, values};
use crate::ops::{
    DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange, noise, table_start,
};
use crate::rng::NoiseDistribution;
use crate::rng::key::NoiseKey;
use burn::tensor::{DType, Tensor, TensorData};

const SIGMA: f64 = 0.4;
const RANK: usize = 3;
const SHAPE: [usize; 2] = [35, 37];
const PAIRS: PairRange = PairRange { first: 6, count: 4 };
const TABLE: usize = 5000;

fn key(parameter: u32, distribution: NoiseDistribution) -> NoiseKey {
    NoiseKey::new(11, parameter, 2).with_distribution(distribution)
}

/// Elements of the noise of the weight with low rank, of the weight with dense noise, and of the bias.
const ELEMENTS: [usize; 3] = [RANK * (SHAPE[0] + SHAPE[1]), SHAPE[0] * SHAPE[1], SHAPE[1]];

/// One source for each of [`ELEMENTS`].
type Sources = [NoiseSource; 3];

fn drawn() -> Sources {
    [NoiseSource::Drawn, NoiseSource::Drawn, NoiseSource::Drawn]
}

/// Noise of pairs from `first` on, including pairs before and after the used ones.
fn cached(on: &Implementation, distribution: NoiseDistribution, first: u32) -> Sources {
    std::array::from_fn(|i| {
        let pairs = PairRange::new(first, PAIRS.count + 3);
        let noise = noise(key(u32::from(i == 2), distribution), pairs, ELEMENTS[i], &on.device, DType::F32);
        NoiseSource::Cached { noise, first_pair: 4 }
    })
}

fn table(on: &Implementation, distribution: NoiseDistribution) -> Tensor<1> {
    noise(key(9, distribution), PairRange::new(0, 1), TABLE, &on.device, DType::F32).reshape([TABLE])
}

/// The runs of the table as cached noise, each moved by `shift`.
fn runs(on: &Implementation, distribution: NoiseDistribution, shift: usize) -> Sources {
    let table = values(table(on, distribution));
    std::array::from_fn(|i| {
        let run = |pair| {
            let start = table_start(key(u32::from(i == 2), distribution), pair, ELEMENTS[i], TABLE);
            assert!(start + ELEMENTS[i] <= TABLE && start.is_multiple_of(16));
            (0..ELEMENTS[i]).map(move |e| (start + shift + e) % TABLE)
        };
        let noise: Vec<f32> = (0..PAIRS.count).flat_map(|p| run(PAIRS.first + p)).map(|e| table[e]).collect();
        let data = TensorData::new(noise, [PAIRS.count as usize, ELEMENTS[i]]);
        NoiseSource::Cached { noise: Tensor::from_data(data, &on.device), first_pair: PAIRS.first }
    })
}

/// Every operation that takes noise.
fn results(on: &Implementation, distribution: NoiseDistribution, sources: &Sources) -> Vec<Vec<f32>> {
    let [low_rank_source, dense_source, vector_source] = sources.clone();
    let low_rank = LowRankNoise::new(key(0, distribution), RANK, SIGMA);
    let (dense, vector) = (DenseNoise::new(key(0, distribution), SIGMA), DenseNoise::new(key(1, distribution), SIGMA));
    let w = || on.tensor(&inputs(SHAPE[0] * SHAPE[1], 1), SHAPE);
    let b = || on.tensor(&inputs(SHAPE[1], 2), [SHAPE[1]]);
    let bias = || LinearBias::Perturbed(b(), vector, vector_source.clone());
    let weights = || on.tensor(&inputs(PAIRS.count as usize, 4), [PAIRS.count as usize]);
    let mut results = Vec::new();
    for input in [InputRows::PerMember, InputRows::Shared] {
        let rows = if input == InputRows::Shared { 3 } else { 3 * PAIRS.members() };
        let x = || on.tensor(&inputs(rows * SHAPE[0], 3), [rows, SHAPE[0]]);
        let members = LinearMembers { pairs: PAIRS, input };
        results.push(values(on.low_rank_linear(x(), w(), bias(), low_rank, low_rank_source.clone(), members)));
        results.push(values(on.dense_linear(x(), w(), bias(), dense, dense_source.clone(), members)));
    }
    results.push(values(on.perturbed_vector(b(), vector, vector_source, PAIRS)));
    results.push(values(on.low_rank_estimate(weights(), low_rank, low_rank_source, PAIRS.first, SHAPE)));
    results.push(values(on.dense_estimate(weights(), dense, dense_source, PAIRS.first, ELEMENTS[1])));
    results
}

/// Largest distance between results in units of the tolerance.
fn largest_distance(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f64 {
    let wide = |values: &Vec<f32>| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
    found
        .iter()
        .zip(expected)
        .map(|(found, expected)| distance(found, &wide(expected), ELEMENTS[0]))
        .fold(0.0, f64::max)
}

/// Every distribution on every implementation.
fn everywhere(check: impl Fn(&Implementation, NoiseDistribution)) {
    implementations().iter().for_each(|on| DISTRIBUTIONS.into_iter().for_each(|distribution| check(on, distribution)));
}

#[test]
fn cached_noise_equals_drawn_noise() {
    everywhere(|on, distribution| {
        let expected = results(on, distribution, &drawn());
        let found = results(on, distribution, &cached(on, distribution, 4));
        if on.portable {
            // Drawn by tensor operations, held by the kernel: equal within rounding.
            assert!(largest_distance(&found, &expected) < 1.0, "{}, {distribution:?}", on.name);
        } else {
            assert!(found == expected, "{}, {distribution:?}", on.name);
        }
        let wrong = results(on, distribution, &cached(on, distribution, 5));
        assert!(largest_distance(&wrong, &expected) > 1000.0, "canary: {}, {distribution:?}", on.name);
    });
}

#[test]
fn table_noise_equals_its_runs() {
    everywhere(|on, distribution| {
        let table = table(on, distribution);
        let sources = std::array::from_fn(|_| NoiseSource::Table(table.clone()));
        let found = results(on, distribution, &sources);
        let as_cached = |shift| results(on, distribution, &runs(on, distribution, shift));
        assert!(found == as_cached(0), "{}, {distribution:?}", on.name);
        assert!(largest_distance(&found, &as_cached(1)) > 1000.0, "canary: {}, {distribution:?}", on.name);
    });
}

/// Places in a table are spread evenly: 4096 pairs over 16 parts, each within five standard deviations.
#[test]
fn places_in_a_table_are_even() {
    let mut parts = [0u32; 16];
    for pair in 0..4096 {
        let start = table_start(key(0, NoiseDistribution::Normal), pair, 100, 1 << 20);
        parts[start * 16 / (1 << 20)] += 1;
    }
    assert!(parts.iter().all(|count| count.abs_diff(256) < 78), "{parts:?}");
}

#[test]
#[should_panic(expected = "the cached noise [7, 216] of pairs 4..11 is not that of pairs 9..13 with 216 elements")]
fn refuses_noise_of_other_pairs() {
    let on = &implementations()[0];
    let [source, ..] = cached(on, NoiseDistribution::Normal, 4);
    let noise = LowRankNoise::new(key(0, NoiseDistribution::Normal), RANK, SIGMA);
    on.low_rank_estimate(Tensor::zeros([4], &on.device), noise, source, 9, SHAPE);
}

#[test]
#[should_panic(expected = "the noise table has 100 elements, fewer than the 216 of one pair's noise")]
fn refuses_a_short_table() {
    let on = &implementations()[0];
    let noise = LowRankNoise::new(key(0, NoiseDistribution::Normal), RANK, SIGMA);
    let source = NoiseSource::Table(Tensor::zeros([100], &on.device));
    on.low_rank_estimate(Tensor::zeros([4], &on.device), noise, source, 0, SHAPE);
}
