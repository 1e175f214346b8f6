//! Members as separate models: the same population as the batched one, for models of any modules.

use crate::support::{Cast, Net, bytes, input, sines};
use burn::module::{Module, Param};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll_core::{
    EggrollConfig, MatrixView, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig, QEggrollConfig, Role,
    counters, reference,
};
use eggroll_nn::integer::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig};
use eggroll_train::*;

impl Net {
    /// The fitness of a member that is a separate model.
    fn score(&self) -> f32 {
        let x = input().cast(self.first.weight.val().dtype());
        (-(self.forward(x) - 0.5).square().cast(DType::F32).mean()).into_scalar()
    }
}

/// The fitness of the members of a chunk.
fn score(net: &Net, members: &MemberChunk) -> Tensor<1> {
    let x = input().cast(net.first.weight.val().dtype());
    -members.mean((net.forward(x) - 0.5).square())
}

fn config(noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, AdamConfig::new()).with_population_size(20).with_sigma(0.3).with_seed(5)
}

/// Largest difference of two generations' fitness.
fn distance(a: &Fitness, b: &Fitness) -> f32 {
    a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn noisers() -> Vec<NoiserConfig> {
    let eggroll = EggrollConfig::new().with_rank(2);
    let signs = NoiseDistribution::Rademacher;
    vec![
        eggroll.clone().into(),
        eggroll.clone().with_distribution(signs).into(),
        eggroll.with_freeze_non_matrix(true).into(),
        OpenEsConfig::new().into(),
        OpenEsConfig::new().with_distribution(signs).into(),
    ]
}

#[test]
fn equals_the_batched_population() {
    let net = Net::new();
    for noiser in noisers() {
        for source in [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached, NoiseSourceConfig::Table { len: 4096 }] {
            let config = config(noiser.clone()).with_noise_source(source);
            let mut strategy = config.init(&net);
            let (batched, members) = (strategy.ask(), strategy.ask());
            let expected = batched.evaluate(|members| score(&net, members));
            let found = members.evaluate_each(&net, |member| member.score());
            assert!(distance(&found, &expected) < 1e-6, "{noiser:?} {source:?}: {found:?} {expected:?}");
            let other = config.with_seed(6).init(&net).ask();
            let other = other.evaluate_each(&net, |member| member.score());
            assert!(distance(&other, &expected) > 1e-3, "canary: {noiser:?} {source:?}");

            // The same fitness gives the same estimate and so the same model, bit for bit.
            let mut copy = strategy.clone();
            let mut moved = net.clone();
            copy.tell(&mut moved, members, expected.clone()).expect("a generation");
            let fitness = expected;
            let mut expected = net.clone();
            strategy.tell(&mut expected, batched, fitness).expect("a generation");
            assert_eq!(bytes(&moved), bytes(&expected));
            assert_ne!(bytes(&moved), bytes(&net), "canary: a step was made");
        }
    }
}

#[test]
fn half_precision_rounds_only_the_weights() {
    // The distance from 1 to the next number of each type.
    for (dtype, epsilon) in [(DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)] {
        let net = Net::new().map(&mut Cast(dtype));
        let exact_net = net.clone().map(&mut Cast(DType::F32));
        for noiser in noisers() {
            let config = config(noiser.clone());
            let ask = |net: &Net, seed| config.clone().with_seed(seed).init(net).ask();
            let [exact, other] =
                [0, 6].map(|seed| ask(&exact_net, seed).evaluate(|members| score(&exact_net, members)));
            let population = ask(&net, 0);
            let perturbed = population.evaluate(|members| score(&net, members));
            let formed = population.evaluate_each(&net, |member| {
                assert_eq!(member.first.weight.val().dtype(), dtype);
                member.score()
            });
            // Formed weights are rounded with their noise, which the perturbed operations keep.
            for (found, tolerance) in [(&perturbed, 2.0 * epsilon), (&formed, 4.0 * epsilon)] {
                let off = distance(found, &exact);
                assert!(off < tolerance, "{noiser:?} {dtype:?}: {off} of {tolerance}");
                assert!(distance(found, &other) > 4.0 * tolerance, "canary: {noiser:?} {dtype:?}");
            }
        }
    }
}

/// What is perturbed is what is drawn: `θ ± E` with `E` of the oracle, in the layout of the parameter's matrix.
#[test]
fn convolution_weights_are_matrices() {
    #[derive(Module, Debug)]
    struct Kernel {
        weight: Param<Tensor<4>>,
        gain: Param<Tensor<1>>,
    }
    let shape = [3, 2, 2, 3];
    let model = Kernel { weight: Param::from_tensor(sines(36).reshape(shape)), gain: Param::from_tensor(sines(3)) };
    let view = MatrixView::of(&shape).expect("a matrix");
    for noiser in [EggrollConfig::new().with_rank(2).into(), NoiserConfig::from(OpenEsConfig::new())] {
        let strategy = config(noiser.clone()).with_frozen(["gain"]).init(&model);
        let key = eggroll_core::NoiseKey::new(5, 0, 0);
        let mut member = 0;
        strategy.ask().evaluate_each_mut(&model, |found| {
            let (pair, sign) = (member / 2, if member % 2 == 0 { 1.0 } else { -1.0 });
            member += 1;
            let (noise, scale) = match strategy.parameters().entries()[0].role {
                Role::LowRank { rank } => {
                    let size = [view.d_input, view.d_output];
                    (reference::low_rank_noise(key, pair, rank, size), 0.3 / (rank as f64).sqrt())
                }
                _ => (reference::dense_noise(key, pair, 36), 0.3),
            };
            let noise: Vec<f32> = noise.iter().map(|e| (sign * scale * e) as f32).collect();
            let noise = Tensor::<1>::from_floats(&noise[..], &Device::flex());
            let plain = model.weight.val() + noise.clone().reshape(shape);
            let expected = model.weight.val() + view.restore(noise.reshape([view.d_input, view.d_output]), shape);
            let far = |from: Tensor<4>| (found.weight.val() - from).abs().max().into_scalar::<f32>();
            assert!(far(expected) < 1e-5, "{noiser:?}");
            assert!(far(plain) > 1e-2, "canary: row-major noise, {noiser:?}");
            assert_eq!(found.gain.val().into_data(), model.gain.val().into_data(), "frozen");
            assert_eq!((found.weight.id, found.gain.id), (model.weight.id, model.gain.id));
            0.0
        });
        assert_eq!(member, 20);
    }
}

/// `y_k = Σ_ij x_i·T_ijk·x_j`, then a rectifier whose slope below 0 is learned: neither has a twin.
#[derive(Module, Debug)]
struct Custom {
    form: Param<Tensor<3>>,
    slope: Param<Tensor<1>>,
}

impl Custom {
    fn new(scale: f64, slope: f32) -> Self {
        let form = sines(18).reshape([3, 3, 2]) * scale;
        Self {
            form: Param::from_tensor(form),
            slope: Param::from_tensor(Tensor::from_floats([slope], &Device::flex())),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, d] = x.dims();
        let outer = x.clone().unsqueeze_dim::<3>(2).matmul(x.unsqueeze_dim::<3>(1)); // [rows, d, d]
        let y = outer.reshape([rows, d * d]).matmul(self.form.val().reshape([d * d, 2])); // [rows, 2]
        y.clone().clamp_min(0.0) + y.clamp_max(0.0) * self.slope.val().unsqueeze::<2>()
    }

    fn loss(&self, x: Tensor<2>, target: Tensor<2>) -> f32 {
        (self.forward(x) - target).square().mean().into_scalar()
    }
}

#[test]
fn layers_without_a_twin_train() {
    let x = sines(60).reshape([20, 3]);
    let teacher = Custom { slope: Param::from_tensor(sines(1) + 0.2), ..Custom::new(-1.0, 0.2) };
    let target = teacher.forward(x.clone());
    let mut model = Custom::new(0.3, 0.0);
    let before = model.loss(x.clone(), target.clone());
    let mut strategy =
        config(EggrollConfig::new()).with_population_size(64).with_sigma(0.05).with_learning_rate(0.03).init(&model);
    for generation in 0..300 {
        let population = strategy.ask();
        let loss = |member: Custom| -member.loss(x.clone(), target.clone());
        let fitness = match generation % 2 {
            0 => population.evaluate_each(&model, loss),
            _ => population.evaluate_each(&model, loss),
        };
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    let after = model.loss(x, target);
    assert!(before > 0.1 && after < 0.02 * before, "{before} {after}");
}

#[test]
fn cores_and_chunks_change_no_bit() {
    let net = Net::new();
    let config = config(EggrollConfig::new().with_rank(2)).with_population_size(70);
    let expected = config.init(&net).ask().evaluate_each(&net, |member| member.score());
    for chunk in [2, 16, 1000] {
        let population = config.clone().with_chunk_size(chunk).init(&net).ask();
        assert_eq!(population.evaluate_each(&net, |member| member.score()), expected);
        assert_eq!(population.evaluate_each(&net, |member| member.score()), expected);
    }
    // Scores that stay tensors are read at once.
    let population = config.init(&net).ask();
    let before = counters::snapshot();
    let tensors = population.evaluate_each(&net, |member| -(member.forward(input()) - 0.5).square().mean());
    assert_eq!((tensors, (counters::snapshot() - before).host_reads), (expected.clone(), 1));
    let other = config.with_seed(6).init(&net).ask().evaluate_each(&net, |member| member.score());
    assert_ne!(other, expected, "canary");
}

#[test]
fn non_finite_fitness_is_ranked_and_reported() {
    let net = Net::new();
    let mut strategy = config(EggrollConfig::new()).with_population_size(4).init(&net);
    let population = strategy.ask();
    let mut scores = [1.0, f32::NAN, 3.0, f32::INFINITY].into_iter();
    let fitness = population.evaluate_each_mut(&net, |_| scores.next().expect("four members"));
    strategy.tell(&mut net.clone(), population, fitness).expect("a generation");
    let report = strategy.report().expect("a report");
    assert_eq!((report.non_finite, report.fitness_worst, report.fitness_best), (2, 1.0, 3.0));
}

#[test]
fn stale_populations_are_refused() {
    let net = Net::new();
    let mut strategy = config(EggrollConfig::new()).init(&net);
    let (stale, population) = (strategy.ask(), strategy.ask());
    let fitness = population.evaluate_each(&net, |member| member.score());
    let mut net = net;
    strategy.tell(&mut net, population, fitness.clone()).expect("a generation");
    let error = strategy.tell(&mut net, stale, fitness).expect_err("refused").to_string();
    assert!(error.contains("population of generation 0, but generation 1 is due"), "{error}");
}

#[test]
#[should_panic(expected = "it lacks the parameter \"first.weight\"")]
fn another_model_is_refused() {
    let population = config(EggrollConfig::new()).init(&Net::new()).ask();
    population.evaluate_each(&Net::new(), |member| member.score());
}

#[test]
#[should_panic(expected = "fitness of shape [2] for member 0, expected [1]")]
fn a_closure_of_the_wrong_length_panics() {
    let net = Net::new();
    config(EggrollConfig::new()).init(&net).ask().evaluate_each(&net, |_| sines(2));
}

#[test]
#[should_panic(expected = "evaluate is already running for this model on this thread (parameter \"first.weight\")")]
fn nesting_is_refused() {
    let net = Net::new();
    let population = config(EggrollConfig::new()).init(&net).ask();
    population.evaluate(|members| {
        population.evaluate_each(&net, |member| member.score());
        score(&net, members)
    });
}

#[derive(Module, Debug)]
struct IntegerModel {
    embedding: Embedding,
    norm: LayerNorm,
}

/// Tables and vectors of integers: exactly the batched members. (A product `x·W` is shifted once there, and so differs.)
#[test]
fn integer_tables_and_vectors_are_exact() {
    let device = Device::flex();
    let on = (&device, integer_type(&device));
    let model = IntegerModel {
        embedding: EmbeddingConfig::new(8, 8).init(&device),
        norm: LayerNormConfig::new(8).init(&device),
    };
    let forward = |model: &IntegerModel, tokens: Tensor<2, Int>, count: usize| {
        let logits = model.norm.forward(model.embedding.forward(tokens)).reshape([count * 6, 8]);
        let targets: Vec<i8> = (0..count * 6).map(|row| (row % 6) as i8).collect();
        log_likelihood(logits, Tensor::from_data(TensorData::new(targets, [count * 6]), on), count, Rounding::Floor)
    };
    let tokens = Tensor::<2, Int>::from_data([[3, 1, 0, 7, 2, 5]], on);
    for noiser in [QEggrollConfig::new().with_sigma_shift(0), QEggrollConfig::new().with_rank(3).with_sigma_shift(1)] {
        for source in [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Table { len: 4096 }] {
            let config =
                EvolutionStrategyConfig::integer(noiser.clone()).with_population_size(16).with_noise_source(source);
            let mut strategy = config.init(&model);
            let (batched, alone) = (strategy.ask(), strategy.ask());
            let expected = batched.evaluate(|members| forward(&model, members.repeat(tokens.clone()), members.count()));
            let found = alone.evaluate_each(&model, |member| forward(&member, tokens.clone(), 1));
            assert_eq!(found, expected, "{noiser:?} {source:?}");
            let canary = config.with_seed(1).init(&model).ask();
            assert_ne!(canary.evaluate_each(&model, |member| forward(&member, tokens.clone(), 1)), expected);

            let (mut moved, mut updated) = (model.clone(), model.clone());
            strategy.clone().tell(&mut moved, alone, found).expect("a generation");
            strategy.tell(&mut updated, batched, expected).expect("a generation");
            assert_eq!(bytes(&moved), bytes(&updated));
        }
    }
}

/// A sum of squares needs no optimizer's momentum: the sign of the estimate alone finds the way.
#[test]
fn integer_scores_are_compared_exactly() {
    let net = Net::new();
    let population = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).init(&net).ask();
    let mut member = 1 << 24;
    let fitness = population.evaluate_each_mut(&net, |_| {
        member += 1;
        member
    });
    assert_eq!(fitness.integers().expect("integers")[1] - fitness.integers().expect("integers")[0], 1);
    assert_eq!(fitness.tied_pairs(), 0.0);
}
