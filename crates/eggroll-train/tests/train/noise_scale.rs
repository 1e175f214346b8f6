//! Noise relative to each parameter's spread: equal to a model that is scaled by hand, and to formulas in f64.

use crate::support::{Net, bytes, input, sines};
use burn::module::{Module, Param};
use burn::nn;
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor};
use eggroll_core::reference::{dense_noise, low_rank_noise};
use eggroll_core::{BaselineSubtractionConfig, CustomNoiser, EggrollConfig, NoiseDistribution, NoiseSourceConfig};
use eggroll_core::{Noiser, NoiserConfig, OpenEsConfig, QEggrollConfig, Role, SparseConfig};
use eggroll_nn::graph::PopulationGraph;
use eggroll_nn::{Linear, integer};
use eggroll_train::*;

const MEMBERS: usize = 20;
const SCALES: [GradientScale; 3] =
    [GradientScale::SqrtPopulation, GradientScale::ScoreFunction, GradientScale::InverseSigma];

fn config(noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, SgdConfig::new())
        .with_population_size(MEMBERS)
        .with_sigma(0.3)
        .with_learning_rate(0.5)
        .with_shaping(FitnessShaping::Raw)
        .with_noise_scale(NoiseScale::RelativeToSpread)
}

/// Of another crate.
#[derive(Debug)]
struct Own;

impl Noiser for Own {
    fn role(&self, shape: &[usize]) -> Role {
        if shape.len() > 1 { Role::LowRank { rank: 1 } } else { Role::Dense }
    }
}

fn noisers() -> [NoiserConfig; 7] {
    let signs = EggrollConfig::new().with_rank(4).with_distribution(NoiseDistribution::Rademacher);
    [
        EggrollConfig::new().with_rank(4).into(),
        signs.into(),
        OpenEsConfig::new().into(),
        SparseConfig::new().into(),
        BaselineSubtractionConfig::new(4).into(),
        NoiserConfig::SignEggroll(EggrollConfig::new()),
        CustomNoiser::new(Own).into(),
    ]
}

/// `[rows, columns]` of ±1, half of each: their standard deviation is 1.
fn signs(rows: usize, columns: usize) -> Tensor<2> {
    let values: Vec<f32> = (0..rows * columns).map(|i| if (i * 7 / 3) % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let sum: f32 = values.iter().sum();
    assert_eq!(sum, 0.0, "as many of each");
    Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape([rows, columns])
}

/// Layers whose weights have been divided by the numbers that their inputs are multiplied by.
#[derive(Module, Debug)]
struct Scaled {
    first: Linear,
    second: Linear,
    factors: [f32; 2],
}

impl Scaled {
    /// Spreads `spreads` times those of signs, divided by `factors`.
    fn new(spreads: [f32; 2], factors: [f32; 2]) -> Self {
        let layer = |weight: Tensor<2>| Linear { weight: Param::from_tensor(weight), bias: None };
        let scales = [spreads[0] / factors[0], spreads[1] / factors[1]];
        Self { first: layer(signs(4, 6) * scales[0]), second: layer(signs(6, 2) * scales[1]), factors }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let hidden = tanh(self.first.forward_shared(x * self.factors[0]));
        self.second.forward(hidden * self.factors[1])
    }

    /// The weights of the layers without factors.
    fn weights(&self) -> Vec<u8> {
        let whole = |layer: &Linear, factor| layer.weight.val() * factor;
        let weights = [whole(&self.first, self.factors[0]), whole(&self.second, self.factors[1])];
        weights.into_iter().flat_map(|weight| weight.into_data().as_bytes().to_vec()).collect()
    }

    fn fitness(&self, population: &Population) -> Fitness {
        population.evaluate(|members| -members.mean((self.forward(input()) - 0.5).square()))
    }
}

/// Absolute noise on `θ/spread`, bit for bit: spreads are powers of two. Also what a probe sees, a decay, and noise that is held.
#[test]
fn equals_a_model_that_is_scaled_by_hand() {
    let spreads = [0.125, 4.0];
    for (number, noiser) in noisers().into_iter().enumerate() {
        for scale in SCALES {
            let source = [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached][number % 2];
            let relative = config(noiser.clone()).with_gradient_scale(scale).with_noise_source(source);
            let relative = relative.with_anchor_decay(0.25).with_clip_norm(None);
            let run = |config: &EvolutionStrategyConfig, factors: [f32; 2]| {
                let mut model = Scaled::new(spreads, factors);
                let mut strategy = config.init(&model);
                let mut fitness = Vec::new();
                for _ in 0..3 {
                    let population = strategy.ask();
                    fitness.push(model.fitness(&population));
                    strategy.tell(&mut model, population, fitness[fitness.len() - 1].clone()).expect("a generation");
                }
                let probe = strategy.probe_sigma(&model, [0.1, 1.0], |population| model.fitness(population));
                (model.weights(), fitness, probe.expect("probes"))
            };
            let expected = run(&relative.clone().with_noise_scale(NoiseScale::Absolute), spreads);
            assert_eq!(run(&relative, [1.0; 2]), expected, "{noiser:?} {scale:?}");
            let absolute = run(&relative.clone().with_noise_scale(NoiseScale::Absolute), [1.0; 2]);
            assert_ne!(absolute.0, expected.0, "canary: {noiser:?} {scale:?}");

            // Factors by pattern, of absolute noise and times the spreads.
            let scaled = |config: &EvolutionStrategyConfig, scales: [f64; 2]| {
                run(&config.clone().with_scales([("first.*", scales[0]), ("*weight", scales[1])]), [1.0; 2])
            };
            let absolute = relative.clone().with_noise_scale(NoiseScale::Absolute);
            assert_eq!(scaled(&absolute, spreads.map(f64::from)), expected, "{noiser:?} {scale:?}");
            let [first, second] = spreads;
            let expected = run(&absolute, [2.0 * first, 0.25 * second]);
            assert_eq!(scaled(&relative, [2.0, 0.25]), expected, "{noiser:?} {scale:?}");
        }
    }
}

/// Values of a parameter in f64, and their standard deviation.
fn values<const D: usize>(tensor: &Param<Tensor<D>>) -> (Vec<f64>, f64) {
    let values: Vec<f64> = tensor.val().into_data().iter::<f64>().collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let spread = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
    (values, spread)
}

/// `θ + η·scale·Σ_q (f₂q − f₂q₊₁)·E_q`, `E_q` with the spread as a factor, in f64.
#[test]
fn a_step_by_formula() {
    let fitness: Vec<f32> = (0..MEMBERS).map(|member| (member as f32 * 1.3).sin()).collect();
    for (noiser, rank) in [(NoiserConfig::from(EggrollConfig::new().with_rank(2)), 2), (OpenEsConfig::new().into(), 0)]
    {
        for scale in SCALES {
            let n = MEMBERS as f64;
            let factor = match scale {
                GradientScale::SqrtPopulation => 1.0 / n.sqrt(),
                GradientScale::ScoreFunction => 1.0 / (n * 0.3 * 0.3),
                GradientScale::InverseSigma => 1.0 / (n * 0.3),
            };
            let before = Net::new();
            let mut after = before.clone();
            let mut strategy = config(noiser.clone()).with_gradient_scale(scale).init(&before);
            let population = strategy.ask();
            let perturbation = population.perturbation().clone();
            strategy.tell(&mut after, population, fitness.clone().into()).expect("a generation");

            let expected = |(theta, spread): (Vec<f64>, f64), position: usize, shape: &[usize]| {
                let noise = perturbation.parameter(position);
                assert!((noise.sigma - 0.3 * spread).abs() < 1e-12 * spread, "{position}: {}", noise.sigma);
                let mut theta = theta;
                for pair in 0..MEMBERS / 2 {
                    let weight = f64::from(fitness[2 * pair]) - f64::from(fitness[2 * pair + 1]);
                    let (draw, root) = match (shape, rank) {
                        (&[rows, columns], 1..) => {
                            (low_rank_noise(noise.key, pair as u32, rank, [rows, columns]), (rank as f64).sqrt())
                        }
                        _ => (dense_noise(noise.key, pair as u32, theta.len()), 1.0),
                    };
                    let step = 0.5 * factor * weight * 0.3 * spread / root;
                    theta.iter_mut().zip(draw).for_each(|(theta, draw)| *theta += step * draw);
                }
                theta
            };
            let near = |found: Vec<f64>, expected: Vec<f64>| {
                let largest = expected.iter().fold(1.0f64, |largest, value| largest.max(value.abs()));
                assert!(
                    found.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 3e-6 * largest),
                    "{found:?} {expected:?}"
                );
            };
            let layers = [(&before.first, &after.first, [4, 6]), (&before.second, &after.second, [6, 2])];
            for (layer, (before, after, shape)) in layers.into_iter().enumerate() {
                let [bias, later] = [before, after].map(|layer| layer.bias.as_ref().expect("a bias"));
                near(values(&after.weight).0, expected(values(&before.weight), 2 * layer, &shape));
                near(values(later).0, expected(values(bias), 2 * layer + 1, &shape[1..]));
            }
        }
    }
}

/// A fitness that says nothing moves each value by `η·σ·τ`, `η·τ/(√N·σ)` or `η·τ/√N`, as documented.
#[test]
fn the_length_of_a_step_that_has_learned_nothing() {
    let start = Net { first: crate::support::layer(64, 48), second: crate::support::layer(48, 32) };
    let (members, sigma, rate) = (1024, 0.05, 0.1);
    let mixed = |member: u32| {
        (member.wrapping_mul(0x9e37_79b9) ^ (member.wrapping_mul(0x85eb_ca6b) >> 13)).wrapping_mul(0xc2b2_ae35)
    };
    let fitness: Vec<f32> = (0..members as u32).map(|member| (mixed(member) >> 8) as f32).collect();
    let root = f64::from(members as u16).sqrt();
    for (scale, length) in SCALES.into_iter().zip([sigma, 1.0 / (root * sigma), 1.0 / root]) {
        let config = config(EggrollConfig::new()).with_population_size(members).with_gradient_scale(scale);
        let config = config.with_shaping(FitnessShaping::ZScore).with_sigma(sigma).with_learning_rate(rate);
        let (mut model, mut strategy) = (start.clone(), config.init(&start));
        let population = strategy.ask();
        strategy.tell(&mut model, population, fitness.clone().into()).expect("a generation");
        for (before, after) in [(&start.first, &model.first), (&start.second, &model.second)] {
            let ((before, spread), (after, _)) = (values(&before.weight), values(&after.weight));
            let squares: f64 = before.iter().zip(&after).map(|(b, a)| (a - b).powi(2)).sum();
            let found = (squares / before.len() as f64).sqrt() / (rate * length * spread);
            assert!((found - 1.0).abs() < 0.1, "{scale:?}: {found}");
        }
    }
}

/// Members as models, batched, and of a traced model.
#[test]
fn all_ways_to_a_member_agree() {
    #[derive(Module, Debug)]
    struct Stock {
        first: nn::Linear,
        second: nn::Linear,
    }
    let net = Net::new();
    for noiser in noisers() {
        let population = config(noiser.clone()).init(&net).ask();
        let loss = |y: Tensor<2>| -(y - 0.5).square().mean().reshape([1]);
        let each = population.evaluate_each(&net, |member| loss(member.forward(input())));
        let batched = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        let stock = Stock { first: net.first.clone().into(), second: net.second.clone().into() };
        let forward = |stock: &Stock, x: Tensor<2>| stock.second.forward(tanh(stock.first.forward(x)));
        let graph = PopulationGraph::trace(&stock, input(), forward).expect("traces");
        let traced = config(noiser.clone()).init(&stock).ask();
        let traced = traced.evaluate(|members| {
            let y = graph.forward(&stock, members.repeat(input()));
            -members.mean((y - 0.5).square())
        });
        let near = |a: &Fitness, b: &Fitness| a.values().iter().zip(b.values()).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near(&each, &batched) && near(&traced, &batched), "{noiser:?}: {each:?} {batched:?} {traced:?}");
        let absolute = config(noiser).with_noise_scale(NoiseScale::Absolute).init(&net).ask();
        let absolute = absolute.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        assert!(!near(&absolute, &batched), "canary");
    }
}

/// The spreads are those of the first model: also after a record, which has them.
#[test]
fn spreads_stay_those_of_the_first_model() {
    let generation = |strategy: &mut EvolutionStrategy, model: &mut Net| {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((model.forward(input()) - 0.5).square()));
        strategy.tell(model, population, fitness).expect("a generation");
    };
    let config = EvolutionStrategyConfig { optimizer: AdamConfig::new().into(), ..config(EggrollConfig::new()) };
    let mut model = Net::new();
    let mut strategy = config.init(&model);
    let first = strategy.parameters().spreads().expect("relative").to_vec();
    (0..3).for_each(|_| generation(&mut strategy, &mut model));
    assert_eq!(strategy.parameters().spreads(), Some(&first[..]));

    let mut saved = model.clone();
    let fresh = config.init(&saved);
    assert_ne!(fresh.parameters().spreads(), Some(&first[..]), "canary: the model has changed");
    let mut other = fresh.clone();
    let mut resumed = fresh.try_load_record(strategy.to_record()).expect("loads");
    let mut loaded = config.init(&saved).load_record(strategy.to_record());
    assert_eq!(resumed.parameters().spreads(), Some(&first[..]));
    let mut twin = saved.clone();
    let mut third = saved.clone();
    (0..3).for_each(|_| generation(&mut strategy, &mut model));
    (0..3).for_each(|_| generation(&mut resumed, &mut saved));
    (0..3).for_each(|_| generation(&mut loaded, &mut twin));
    (0..3).for_each(|_| generation(&mut other, &mut third));
    assert_eq!((bytes(&saved), bytes(&twin)), (bytes(&model), bytes(&model)));
    assert_ne!(bytes(&third), bytes(&model), "canary");
}

#[test]
fn records_of_other_spreads_are_refused() {
    let net = Net::new();
    let relative = config(EggrollConfig::new());
    let absolute = relative.clone().with_noise_scale(NoiseScale::Absolute);
    let record = |config: &EvolutionStrategyConfig, spreads: Option<Vec<f64>>| {
        let record = config.init(&net).to_record();
        StrategyRecord { spreads, ..record }
    };
    let refused = |config: &EvolutionStrategyConfig, record| {
        config.init(&net).try_load_record(record).err().expect("refused").to_string()
    };
    assert!(record(&absolute, None).spreads.is_none());
    assert!(absolute.init(&net).try_load_record(record(&absolute, None)).is_ok());
    assert!(refused(&relative, record(&relative, None)).ends_with("the noise of this strategy is relative to them"));
    let four = || Some(vec![1.0, 2.0, 3.0, 4.0]);
    assert!(refused(&absolute, record(&absolute, four())).ends_with("the noise of this strategy is absolute"));
    assert!(refused(&relative, record(&relative, Some(vec![1.0]))).ends_with("1 for the 4 parameters of the model"));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-40] {
        let error = refused(&relative, record(&relative, Some(vec![1.0, wrong, 1.0, 1.0])));
        assert!(error.ends_with(&format!("{wrong:?} for \"first.bias\", a number above 0 is needed")), "{error}");
    }
    let loaded = relative.init(&net).try_load_record(record(&relative, four())).expect("loads");
    assert_eq!(loaded.ask().perturbation().parameter(2).sigma, 0.3 * 3.0);
}

#[test]
fn parameters_without_spread_count_as_the_smallest() {
    let mut net = Net::new();
    let spreads = |net: &Net| config(EggrollConfig::new()).init(net).parameters().spreads().expect("relative").to_vec();
    let smallest = spreads(&net)[..3].iter().copied().fold(f64::INFINITY, f64::min);
    for value in [1.0, 0.0] {
        net.second.bias = Some(Param::from_tensor(Tensor::full([2], value, &Device::flex())));
        assert_eq!(spreads(&net)[3], smallest, "all values are {value}");
    }
    // Nothing to take it from: all but the bias are frozen.
    let alone = config(EggrollConfig::new()).with_frozen(["first", "second.weight"]);
    let error = alone.try_init(&net).err().expect("refused");
    assert!(matches!(error, Error::Spread(_)), "{error}");
    let text = error.to_string();
    assert!(["\"second.bias\"", "[2]", "0.0", "Freeze", "absolute"].iter().all(|part| text.contains(part)), "{text}");
    assert!(alone.with_noise_scale(NoiseScale::Absolute).try_init(&net).is_ok());
    assert!(config(EggrollConfig::new()).with_roles([("*bias", Role::Frozen)]).try_init(&net).is_ok());
    let frozen = config(EggrollConfig::new()).with_frozen(["second.bias"]).init(&net);
    assert_eq!(frozen.parameters().spreads().expect("relative")[3], 1.0);
    // f32 cannot hold it.
    net.second.bias = Some(Param::from_tensor(Tensor::from_floats([1e-39, -1e-39], &Device::flex())));
    let error = config(EggrollConfig::new()).try_init(&net).err().expect("refused");
    assert!(error.to_string().contains("e-39"), "{error}");

    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let voting = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_noise_scale(NoiseScale::RelativeToSpread);
    let error = voting.try_init(&integers).err().expect("refused").to_string();
    let expected =
        "noise_scale relative_to_spread is for float parameters, but \"weight\" is a trained integer parameter";
    assert!(error.starts_with(expected), "{error}");
}

/// `τ·min(1, 10·N/n)^¼`: of all trained values; a record has the product.
#[test]
fn relative_to_population_falls_with_members_for_each_value() {
    let net = Net::new();
    for (members, frozen, values) in
        [(2, vec![], 44.0), (2, vec!["second"], 30.0), (4, vec![], 44.0), (20, vec![], 44.0)]
    {
        let config = config(EggrollConfig::new()).with_population_size(members).with_frozen(frozen);
        let to_spread = config.init(&net).ask();
        let to_population = config.with_noise_scale(NoiseScale::RelativeToPopulation);
        let strategy = to_population.init(&net);
        let share = (10.0 * members as f64 / values).min(1.0).powf(0.25);
        for position in 0..2 {
            let sigma = |population: &Population| population.perturbation().parameter(position).sigma;
            let (found, expected) = (sigma(&strategy.ask()), sigma(&to_spread) * share);
            assert!((found / expected - 1.0).abs() < 1e-14, "{members} members, {values} values: {found} {expected}");
        }
        assert_eq!(share < 1.0, members < 20, "canary: {members} members");
        let loaded = to_population.init(&net).try_load_record(strategy.to_record()).expect("loads");
        assert_eq!(loaded.parameters().spreads(), strategy.parameters().spreads());
    }
    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let voting =
        EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_noise_scale(NoiseScale::RelativeToPopulation);
    let error = voting.try_init(&integers).err().expect("refused").to_string();
    assert!(error.starts_with("noise_scale relative_to_population is for float parameters"), "{error}");
}

/// A schedule that ends where `σ·τ` is 0 in f32.
#[test]
fn noise_that_f32_cannot_hold_is_refused() {
    let layer = Linear { weight: Param::from_tensor(signs(4, 6) * 1e-3), bias: None };
    let sigma = CustomSigma::new("falling", |generation| if generation == 0 { 0.1 } else { 1e-36 });
    let mut strategy = config(EggrollConfig::new()).with_sigma(sigma).init(&layer);
    let mut model = layer;
    let fitness = || Fitness::from((0..MEMBERS).map(|member| member as f32).collect::<Vec<_>>());
    let population = strategy.ask();
    strategy.tell(&mut model, population, fitness()).expect("a generation");
    let population = strategy.ask();
    let error = strategy.tell(&mut model, population, fitness()).expect_err("refused").to_string();
    assert!(error.starts_with("sigma of generation 1 is 1e-36, times 0.001"), "{error}");
    assert!(error.contains("\"weight\""), "{error}");
}

/// Rows of a horizon and of a projection, which take the noise of several epochs and a part of the estimate.
#[test]
fn horizons_and_projections_have_the_factor() {
    let spreads = [0.5, 2.0];
    let run = |config: EvolutionStrategyConfig, factors: [f32; 2]| {
        let mut model = Scaled::new(spreads, factors);
        let mut strategy = config.init(&model);
        for _ in 0..4 {
            let population = strategy.ask();
            let fitness = model.fitness(&population);
            strategy.tell(&mut model, population, fitness).expect("a generation");
        }
        model.weights()
    };
    let horizon = config(EggrollConfig::new()).with_unroll_horizon(2);
    let absolute = |config: &EvolutionStrategyConfig| config.clone().with_noise_scale(NoiseScale::Absolute);
    assert_eq!(run(horizon.clone(), [1.0; 2]), run(absolute(&horizon), spreads));
    // Five rows of four inputs span them: fewer are projected on.
    let rows = sines(8).reshape([2, 4]);
    let projected = |config: EvolutionStrategyConfig, factors: [f32; 2]| {
        let mut model = Scaled::new(spreads, factors);
        let mut strategy = config.init(&model);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((model.forward(rows.clone()) - 0.5).square()));
        strategy.tell(&mut model, population, fitness).expect("a generation");
        model.weights()
    };
    let shared = config(EggrollConfig::new()).with_credit(Credit::Parts);
    assert_eq!(projected(shared.clone(), [1.0; 2]), projected(absolute(&shared), spreads));
}
