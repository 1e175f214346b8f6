//! Pairs without noise: every operation gives their members what it gives without noise, and all others what they have without
//! baselines.

use super::{DISTRIBUTIONS, Implementation, implementations, inputs, values};
use crate::ops::{
    DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, PairRange, SparseNoise,
    noise, sparse_linear,
};
use crate::rng::key::NoiseKey;
use burn::tensor::{DType, Int, Tensor, TensorData};

/// Pairs 6 to 10, groups of three: 6, the first, and 9 are baselines.
const PAIRS: PairRange = PairRange { first: 6, count: 5 };
const GROUP: u32 = 3;
const SHAPE: [usize; 2] = [35, 37];
const RANK: usize = 2;
const ROWS: usize = 3;
const TABLE: usize = 5000;

fn is_baseline(pair: u32) -> bool {
    (PAIRS.first + pair).is_multiple_of(GROUP)
}

/// The noise under a key, of any scale, from one of the sources.
struct Under {
    key: NoiseKey,
    sigma: f64,
    source: fn(&Implementation, NoiseKey, usize) -> NoiseSource,
}

impl Under {
    fn source(&self, on: &Implementation, elements: usize) -> NoiseSource {
        (self.source)(on, self.key, elements)
    }

    /// Every operation that has rows of members, as the rows of every pair.
    fn members(&self, on: &Implementation) -> Vec<Vec<f32>> {
        let members = LinearMembers { pairs: PAIRS, input: InputRows::PerMember };
        let rows = ROWS * PAIRS.members();
        let (x, w) = (|| on.tensor(&inputs(rows * SHAPE[0], 1), [rows, SHAPE[0]]), || self.weight(on));
        let (low_rank, dense) = (LowRankNoise::new(self.key, RANK, self.sigma), DenseNoise::new(self.key, self.sigma));
        let elements = RANK * (SHAPE[0] + SHAPE[1]);
        let vector = || on.tensor(&inputs(SHAPE[1], 3), [SHAPE[1]]);
        let bias = || LinearBias::Perturbed(vector(), dense, self.source(on, SHAPE[1]));
        let tokens: Vec<i32> = (0..rows as i32).map(|row| row * 7 % SHAPE[0] as i32).collect();
        let tokens = || Tensor::<1, Int>::from_data(TensorData::new(tokens.clone(), [rows]), &on.device);
        let embedding = |noise: MatrixNoise| {
            on.perturbed_embedding(w(), tokens(), noise, self.source(on, noise.elements(SHAPE)), members)
        };
        let sparse = SparseNoise::new(self.key, self.sigma);
        let shared = |rank| {
            let x = on.tensor(&inputs(ROWS * SHAPE[0], 1), [ROWS, SHAPE[0]]);
            let (noise, members) =
                (LowRankNoise::new(self.key, rank, self.sigma), LinearMembers { input: InputRows::Shared, ..members });
            on.low_rank_linear(x, w(), bias(), noise, self.source(on, rank * (SHAPE[0] + SHAPE[1])), members)
        };
        vec![
            values(shared(1)),
            values(shared(RANK)),
            values(on.low_rank_linear(x(), w(), bias(), low_rank, self.source(on, elements), members)),
            values(on.dense_linear(x(), w(), LinearBias::None, dense, self.source(on, SHAPE[0] * SHAPE[1]), members)),
            values(sparse_linear(x(), w(), LinearBias::None, sparse, self.source(on, SHAPE[1]), members)),
            values(embedding(MatrixNoise::LowRank(low_rank))),
            values(embedding(MatrixNoise::Dense(dense))),
            values(on.perturbed_vector(vector(), dense, self.source(on, SHAPE[1]), PAIRS)),
        ]
    }

    fn weight(&self, on: &Implementation) -> Tensor<2> {
        on.tensor(&inputs(SHAPE[0] * SHAPE[1], 2), SHAPE)
    }

    /// Both estimates, of pairs with these weights.
    fn estimates(&self, on: &Implementation, weights: &[f64]) -> [Vec<f32>; 2] {
        let (low_rank, dense) = (LowRankNoise::new(self.key, RANK, self.sigma), DenseNoise::new(self.key, self.sigma));
        let weights = || on.tensor(weights, [weights.len()]);
        let source = self.source(on, RANK * (SHAPE[0] + SHAPE[1]));
        [
            values(on.low_rank_estimate(weights(), low_rank, source, PAIRS.first, SHAPE)),
            values(on.dense_estimate(weights(), dense, self.source(on, SHAPE[1]), PAIRS.first, SHAPE[1])),
        ]
    }
}

/// Noise that is held is not that of baselines beforehand: whoever held it may not have known.
const SOURCES: [fn(&Implementation, NoiseKey, usize) -> NoiseSource; 3] = [
    |_, _, _| NoiseSource::Drawn,
    |on, key, elements| {
        let noise = noise(key.with_baselines(0), PAIRS, elements, &on.device, DType::F32);
        NoiseSource::Cached { noise, first_pair: PAIRS.first }
    },
    |on, key, _| {
        let table = noise(key.with_baselines(0), PairRange::new(0, 1), TABLE, &on.device, DType::F32);
        NoiseSource::Table(table.reshape([TABLE]))
    },
];

fn everywhere(check: impl Fn(&Implementation, [&Under; 3])) {
    for on in implementations() {
        for distribution in DISTRIBUTIONS {
            for source in SOURCES {
                let key = NoiseKey::new(3, 1, 4).with_distribution(distribution);
                let under = |key, sigma| Under { key, sigma, source };
                check(&on, [&under(key.with_baselines(GROUP), 0.4), &under(key, 0.4), &under(key, 0.0)]);
            }
        }
    }
}

#[test]
fn members_without_noise() {
    everywhere(|on, [with, without, silent]| {
        let [found, without, silent] = [with, without, silent].map(|under| under.members(on));
        for operation in 0..found.len() {
            let each = found[operation].len() / PAIRS.count as usize;
            for pair in 0..PAIRS.count {
                let rows = |of: &[Vec<f32>]| of[operation][pair as usize * each..][..each].to_vec();
                let [found, without, silent] = [&found, &without, &silent].map(|results| rows(results));
                let (expected, other) = if is_baseline(pair) { (&silent, &without) } else { (&without, &silent) };
                let equal = on.same(&found, expected, SHAPE[0]);
                assert!(equal, "{}, operation {operation}, pair {pair}", on.name);
                assert!(!on.same(&found, other, SHAPE[0]), "canary: {}, operation {operation}, pair {pair}", on.name);
            }
        }
    });
}

/// A baseline does not contribute to an estimate, with any weight.
#[test]
fn estimates_without_baselines() {
    let weights = inputs(PAIRS.count as usize, 4);
    let silenced: Vec<f64> =
        (0..PAIRS.count).zip(&weights).map(|(pair, weight)| if is_baseline(pair) { 0.0 } else { *weight }).collect();
    everywhere(|on, [with, without, _]| {
        let found = with.estimates(on, &weights);
        let expected = without.estimates(on, &silenced);
        let all = without.estimates(on, &weights);
        for ((found, expected), all) in found.iter().zip(&expected).zip(&all) {
            let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            assert!(super::distance(found, &wide(expected), RANK) < 1.0, "{}", on.name);
            assert!(super::distance(found, &wide(all), RANK) > 1000.0, "canary: {}", on.name);
        }
    });
}
