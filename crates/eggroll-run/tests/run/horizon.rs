//! Estimates over episodes of several generations.

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor};
use eggroll_core::reference::{dense_noise, low_rank_noise};
use eggroll_core::{
    EggrollConfig, NoiseDistribution, NoiseKey, NoiseSourceConfig, NoiserConfig, OpenEsConfig, QEggrollConfig,
};
use eggroll_nn::{Linear, integer};
use eggroll_run::*;
use eggroll_train::*;
use std::fs;

const SEED: u64 = 9;

fn layer(weight: &[f32], [d_input, d_output]: [usize; 2], bias: Option<&[f32]>) -> Linear {
    let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, &Device::flex());
    Linear {
        weight: Param::from_tensor(tensor(weight).reshape([d_input, d_output])),
        bias: bias.map(|bias| Param::from_tensor(tensor(bias))),
    }
}

fn small() -> Linear {
    layer(&[0.1, -0.2, 0.3, 0.4, -0.5, 0.6], [3, 2], Some(&[0.0, 0.1]))
}

fn config(noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, SgdConfig::new())
        .with_population_size(8)
        .with_shaping(FitnessShaping::Raw)
        .with_seed(SEED)
}

/// Any fitness, another for every member and generation.
fn fitness(generation: u64, members: usize) -> Vec<f32> {
    (0..members).map(|m| ((m as f32 + 1.0) * (generation as f32 + 1.3)).sin()).collect()
}

fn values<const D: usize>(gradients: &GradientsParams, parameter: &Param<Tensor<D>>) -> Vec<f32> {
    gradients.get::<D>(parameter.id).expect("estimated").into_data().try_to_vec().expect("f32")
}

/// The estimates of weight and bias for a fitness, flat.
fn estimate(strategy: &EvolutionStrategy, layer: &Linear, fitness: &Fitness) -> Vec<f32> {
    let gradients =
        strategy.gradient(layer, &strategy.ask(), fitness).expect("belongs together").expect("fitness differs");
    let mut flat = values(&gradients, &layer.weight);
    flat.extend(layer.bias.iter().flat_map(|bias| values(&gradients, bias)));
    flat
}

/// Goes on by a generation, the model staying as it is.
fn pass(strategy: &mut EvolutionStrategy, layer: &Linear) {
    let population = strategy.ask();
    let fitness = fitness(population.generation(), population.count());
    strategy.tell(&mut layer.clone(), population, fitness.into()).expect("a generation");
}

fn at(config: EvolutionStrategyConfig, layer: &Linear, generation: u64) -> EvolutionStrategy {
    let mut strategy = config.init(layer);
    (0..generation).for_each(|_| pass(&mut strategy, layer));
    strategy
}

/// `−scale·Σ_q (f_{2q} − f_{2q+1})·Σ_t E_{q,t}` as it stands, and the sum of the terms' magnitudes.
fn oracle(config: &EvolutionStrategyConfig, fitness: &[f32], sigma: f64, generations: &[u32]) -> Vec<[f64; 2]> {
    let scale = config.gradient_scale.factor(config.population_size, sigma);
    let mut sums = vec![[0.0; 2]; 3 * 2 + 2];
    for generation in generations {
        for (pair, scores) in fitness.chunks_exact(2).enumerate() {
            let weight = -scale * (f64::from(scores[0]) - f64::from(scores[1]));
            let key =
                |parameter| NoiseKey::new(SEED, parameter, *generation).with_distribution(config.noiser.distribution());
            let of_weight: Vec<f64> = match &config.noiser {
                NoiserConfig::Eggroll(eggroll) => {
                    let noise = low_rank_noise(key(0), pair as u32, eggroll.rank, [3, 2]);
                    noise.into_iter().map(|e| e * sigma / (eggroll.rank as f64).sqrt()).collect()
                }
                _ => dense_noise(key(0), pair as u32, 6).into_iter().map(|e| e * sigma).collect(),
            };
            let of_bias = dense_noise(key(1), pair as u32, 2).into_iter().map(|e| e * sigma);
            for (sum, noise) in sums.iter_mut().zip(of_weight.into_iter().chain(of_bias)) {
                *sum = [sum[0] + weight * noise, sum[1] + (weight * noise).abs()];
            }
        }
    }
    sums
}

fn fits(found: &[f32], expected: &[[f64; 2]]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, [b, size])| (f64::from(*a) - b).abs() < 1e-5 * size)
}

/// Every noiser and reuse, in two episodes, against the sum in f64. σ is that of the episode's first generation.
#[test]
fn estimates_are_the_sum_over_the_episodes_noise() {
    let signs = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
    let noisers = [EggrollConfig::new().with_rank(2).into(), signs.into(), NoiserConfig::from(OpenEsConfig::new())];
    let episode = 4;
    for noiser in noisers {
        for reuse in [1, 2, 4] {
            let config = config(noiser.clone())
                .with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 0.9, last: None })
                .with_noise_reuse(reuse)
                .with_unroll_horizon(episode);
            let layer = small();
            let mut strategy = config.init(&layer);
            for generation in 0..2 * episode {
                let (fitness, start) = (fitness(generation, 8), generation / episode * episode);
                let sigma = 0.1 * 0.9f64.powi(start as i32);
                let found = estimate(&strategy, &layer, &fitness.clone().into());
                let noise: Vec<u32> = ((start / reuse) as u32..=(generation / reuse) as u32).collect();
                let expected = oracle(&config, &fitness, sigma, &noise);
                assert!(fits(&found, &expected), "{noiser:?}, reuse {reuse}, {generation}: {found:?} {expected:?}");
                if noise.len() > 1 {
                    let last = oracle(&config, &fitness, sigma, &noise[noise.len() - 1..]);
                    assert!(!fits(&found, &last), "canary: not the last noise epoch's alone");
                }
                assert_eq!(strategy.ask().resets_state(), generation == start);
                pass(&mut strategy, &layer);
                assert!((strategy.report().expect("a report").sigma - sigma).abs() < 1e-12);
            }
        }
    }
}

/// Wherever the noise comes from, the estimate is the sum of what each noise epoch alone estimates, bit for bit.
#[test]
fn noise_sources() {
    let layer = small();
    let sources = [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached, NoiseSourceConfig::Table { len: 4096 }];
    let mut found = Vec::new();
    for source in sources {
        let plain = config(EggrollConfig::new()).with_noise_source(source);
        let fitness: Fitness = fitness(6, 8).into();
        let alone: Vec<Vec<f32>> = (4..7).map(|g| estimate(&at(plain.clone(), &layer, g), &layer, &fitness)).collect();
        let sum: Vec<f32> = (0..8).map(|i| alone[0][i] + alone[1][i] + alone[2][i]).collect();
        found.push(estimate(&at(plain.with_unroll_horizon(4), &layer, 6), &layer, &fitness));
        assert_eq!(found.last(), Some(&sum), "{source:?}");
    }
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0], found[2], "canary: a table is another stream");
}

/// Influence balancing: `x ← A·x + θ·s`, `A = ½·(I + U)` with `U` the shift by one state, `s = (1, 1, −1, −1, −1)`, the loss
/// `½·(x₁ − 1)²` of every step. What is near the first state pulls θ one way, what arrives later pulls it, harder, the other way.
/// After Tallec and Ollivier, "Unbiasing Truncated Backpropagation Through Time", arXiv 1705.08209, as in Vicol et al. 2021.
const SIGNS: [f64; 5] = [1.0, 1.0, -1.0, -1.0, -1.0];
const STEPS: usize = 2;
const UNROLLS: usize = 8;
const THETA: f64 = 0.5;

fn influence(x: [f64; 5], drive: f64) -> [f64; 5] {
    std::array::from_fn(|i| 0.5 * x[i] + 0.5 * x.get(i + 1).unwrap_or(&0.0) + drive * SIGNS[i])
}

/// The derivative in θ of every unroll's loss; truncated, the influence of earlier unrolls is left out.
fn derivatives(truncated: bool) -> Vec<f64> {
    let (mut x, mut dx) = ([0.0; 5], [0.0; 5]);
    let unroll = |_| {
        if truncated {
            dx = [0.0; 5];
        }
        let step = |_| {
            (x, dx) = (influence(x, THETA), influence(dx, 1.0));
            (x[0] - 1.0) * dx[0]
        };
        (0..STEPS).map(step).sum::<f64>()
    };
    (0..UNROLLS).map(unroll).collect()
}

/// Mean and standard error of every unroll's estimate over seeds, θ staying as it is.
fn mean_estimates(config: &EvolutionStrategyConfig) -> Vec<[f64; 2]> {
    let device = Device::flex();
    let layer = layer(&[THETA as f32], [1, 1], None);
    let signs = Tensor::<2>::from_floats(SIGNS.map(|s| [s as f32]), &device); // [5, 1]
    let shift = std::array::from_fn::<_, 5, _>(|i| {
        std::array::from_fn::<f32, 5, _>(|j| if i == j || i == j + 1 { 0.5 } else { 0.0 })
    });
    let transition = Tensor::<2>::from_floats(shift, &device); // the transpose of A
    let (members, seeds) = (64, 150);
    let mut sums = [[0.0; 2]; UNROLLS];
    for seed in 0..seeds {
        let mut strategy = config.clone().with_seed(seed).init(&layer);
        let mut state = Tensor::<2>::zeros([members, 5], &device);
        for sum in &mut sums {
            let population = strategy.ask();
            let (fitness, next) = population.evaluate_with_state(state, |chunk, mut x| {
                let drive = layer.forward_shared(signs.clone()).reshape([chunk.count(), 5]);
                let mut loss = Tensor::<1>::zeros([chunk.count()], &device);
                for _ in 0..STEPS {
                    x = x.matmul(transition.clone()) + drive.clone(); // [members, 5]
                    let first = x.clone().slice_dim(1, 0..1).reshape([chunk.count()]);
                    loss = loss + (first - 1.0).square() * 0.5;
                }
                (-loss, x)
            });
            state = next;
            let found = f64::from(estimate_of(&strategy, &layer, &population, &fitness));
            *sum = [sum[0] + found, sum[1] + found * found];
            strategy.tell(&mut layer.clone(), population, fitness).expect("a generation");
        }
    }
    let n = seeds as f64;
    sums.map(|[sum, squares]| [sum / n, ((squares / n - (sum / n).powi(2)) / n).sqrt()]).to_vec()
}

fn estimate_of(strategy: &EvolutionStrategy, layer: &Linear, population: &Population, fitness: &Fitness) -> f32 {
    let gradients = strategy.gradient(layer, population, fitness).expect("belongs together").expect("fitness differs");
    values(&gradients, &layer.weight)[0]
}

fn agrees(found: &[[f64; 2]], expected: &[f64]) -> bool {
    found.iter().zip(expected).all(|([mean, error], expected)| (mean - expected).abs() < 5.0 * error)
}

/// PES, its generalization and ES-Single find the gradient of every unroll; the plain estimate finds the truncated one, which
/// points the other way.
#[test]
fn persistent_estimates_are_unbiased_where_truncated_ones_are_not() {
    let (whole, truncated) = (derivatives(false), derivatives(true));
    let last = UNROLLS - 1;
    assert!(whole[last] > 5.0 && truncated[last] < -5.0, "{whole:?} {truncated:?}");
    for noiser in [NoiserConfig::from(OpenEsConfig::new()), EggrollConfig::new().into()] {
        let plain = config(noiser.clone())
            .with_population_size(64)
            .with_sigma(0.1)
            .with_gradient_scale(GradientScale::ScoreFunction);
        for reuse in [1, 2, UNROLLS as u64] {
            let found = mean_estimates(&plain.clone().with_noise_reuse(reuse).with_unroll_horizon(UNROLLS as u64));
            assert!(agrees(&found, &whole), "{noiser:?}, reuse {reuse}: {found:?}, expected {whole:?}");
            assert!(!agrees(&found, &truncated), "canary: {noiser:?}, reuse {reuse}: {found:?}");
        }
        let found = mean_estimates(&plain);
        assert!(agrees(&found, &truncated), "{noiser:?}: {found:?}, expected {truncated:?}");
        assert!(!agrees(&found, &whole), "canary: {noiser:?}: {found:?}");
    }
}

/// What members carry in the run below.
#[derive(Module, Debug)]
struct Carry {
    state: Param<Tensor<2>>,
}

impl Carry {
    fn of(state: Tensor<2>) -> Self {
        Self { state: Param::from_tensor(state) }
    }
}

/// Runs until a generation, from whatever was before.
fn run(strategy: &mut EvolutionStrategy, mut model: Linear, mut state: Tensor<2>, until: u64) -> (Linear, Tensor<2>) {
    while strategy.generation() < until {
        let population = strategy.ask();
        if population.resets_state() {
            state = state.zeros_like();
        }
        let (fitness, next) = population.evaluate_with_state(state, |members, x| {
            let x = model.forward(Tensor::cat(vec![x.clone(), x.slice_dim(1, 0..1) + 1.0], 1)); // [members, 2]
            (-members.mean((x.clone() - 0.7).square()), x)
        });
        state = next;
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    (model, state)
}

#[test]
fn resume_within_an_episode_is_bit_for_bit() {
    for reuse in [1, 2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let start = Tensor::<2>::zeros([8, 2], &Device::flex());
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(8)
            .with_noise_reuse(reuse)
            .with_unroll_horizon(4);
        let model = small();
        let mut strategy = config.init(&model);
        let (model, state) = run(&mut strategy, model, start.clone(), 6);
        checkpoints.save_with_state(&strategy, &model, &Carry::of(state.clone())).expect("saves");
        let (straight, _) = run(&mut strategy, model, state, 12);

        let load = || {
            let loaded = checkpoints.load_latest_with_state(small(), Carry::of(start.clone())).expect("loads");
            loaded.expect("is there")
        };
        let (mut resumed, model, carry) = load();
        assert_eq!((resumed.generation(), resumed.config().unroll_horizon), (6, Some(4)));
        let (model, _) = run(&mut resumed, model, carry.state.val(), 12);
        assert_eq!(parameter_digest(&model), parameter_digest(&straight), "reuse {reuse}");
        // Canary: the state is needed until the episode ends.
        let (mut forgetful, model, _) = load();
        let (model, _) = run(&mut forgetful, model, start.clone(), 12);
        assert_ne!(parameter_digest(&model), parameter_digest(&straight));
    }
}

#[test]
fn refusals_name_the_values() {
    let refuse = |config: EvolutionStrategyConfig, part: &str| {
        let message = config.try_init(&small()).err().expect("refused").to_string();
        assert!(message.contains(part), "{message}");
    };
    let plain = config(EggrollConfig::new());
    refuse(plain.clone().with_unroll_horizon(0), "an unroll horizon must be at least 1 generation, not 0");
    for reuse in [0, 3, 8] {
        let expected = format!("noise_reuse {reuse} does not divide an unroll horizon of 4 generations");
        refuse(plain.clone().with_noise_reuse(reuse).with_unroll_horizon(4), &expected);
    }
    let by_part = plain.clone().with_credit(Credit::Parts);
    refuse(
        by_part.clone().with_unroll_horizon(2),
        "credit parts does not work with an unroll horizon of 2 generations",
    );
    assert!(by_part.with_unroll_horizon(1).try_init(&small()).is_ok());

    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let config = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(4).with_unroll_horizon(4);
    let message = config.clone().with_noise_reuse(2).try_init(&integers).err().expect("refused").to_string();
    assert!(
        message.contains("\"weight\" is updated by votes") && message.contains("needs a noise_reuse of 4, not 2"),
        "{message}"
    );
    assert!(config.with_noise_reuse(4).try_init(&integers).is_ok());
}

/// Configurations without a horizon do not write one.
#[test]
fn horizons_as_text() {
    let plain = config(EggrollConfig::new());
    let text = serde_json::to_string(&plain).expect("writes");
    assert!(!text.contains("horizon"), "{text}");
    assert_eq!(serde_json::from_str::<EvolutionStrategyConfig>(&text).expect("reads").unroll_horizon, None);
    let folder = tempfile::tempdir().expect("a folder");
    let layer = small();
    let path = Checkpoints::new(folder.path()).save(&plain.with_unroll_horizon(3).init(&layer), &layer).expect("saves");
    let text = fs::read_to_string(path.join("strategy.json")).expect("reads");
    assert!(text.contains("\"unroll_horizon\": 3"), "{text}");
}
