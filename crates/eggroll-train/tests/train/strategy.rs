//! Ask and tell: what a generation does, and what it refuses.

use crate::support::{Net, bytes, input, layer};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig, counters};
use eggroll_nn::Linear;
use eggroll_train::*;

fn score(net: &Net, members: &MemberChunk) -> Tensor<1> {
    -members.mean((net.forward(input()) - 0.5).square())
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), AdamConfig::new())
        .with_population_size(20)
        .with_seed(5)
}

fn generation(strategy: &mut EvolutionStrategy, net: Net) -> Net {
    let population = strategy.ask();
    let fitness = population.evaluate(|members| score(&net, members));
    let mut net = net;
    strategy.tell(&mut net, population, fitness).expect("a generation");
    net
}

fn run(config: EvolutionStrategyConfig, generations: usize) -> Net {
    let net = Net::new();
    let mut strategy = config.init(&net);
    (0..generations).fold(net, |net, _| generation(&mut strategy, net))
}

#[test]
fn one_host_read_a_generation() {
    let net = Net::new();
    let mut strategy = config().with_chunk_size(4).init(&net);
    for parallel in [false, true] {
        let population = strategy.ask();
        let before = counters::snapshot();
        let fitness = match parallel {
            false => population.evaluate_mut(|members| score(&net, members)),
            true => population.evaluate(|members| score(&net, members)),
        };
        strategy.tell(&mut net.clone(), population, fitness).expect("a generation");
        let work = counters::snapshot() - before;
        assert_eq!((work.host_reads, work.noise_bytes), (1, 0));
    }
}

/// Launches are one for each layer and chunk and one for each estimate: they do not grow with the population.
#[test]
fn launches_do_not_grow() {
    let launches = |population: usize| {
        let net = Net::new();
        let mut strategy = config().with_population_size(population).with_chunk_size(population).init(&net);
        let before = counters::snapshot();
        let population = strategy.ask();
        // Launches are counted by thread.
        let fitness = population.evaluate_mut(|members| score(&net, members));
        strategy.tell(&mut net.clone(), population, fitness).expect("a generation");
        (counters::snapshot() - before).launches
    };
    assert_eq!((launches(4), launches(512)), (2 + 4, 2 + 4));
}

#[test]
fn chunks_and_cores_change_no_bit() {
    let net = Net::new();
    let config = config().with_population_size(70);
    let expected = config.init(&net).ask().evaluate(|members| score(&net, members));
    for chunk in [1, 2, 6, 16, 70, 1000] {
        let population = config.clone().with_chunk_size(chunk).init(&net).ask();
        assert_eq!(population.evaluate_mut(|members| score(&net, members)), expected, "{chunk}");
        assert_eq!(population.evaluate(|members| score(&net, members)), expected, "{chunk}, parallel");
    }
    let other = config.with_seed(6).init(&net).ask().evaluate(|members| score(&net, members));
    assert_ne!(other, expected, "canary");
}

/// EGGROLL with each distribution of noise.
fn distributions(config: EggrollConfig) -> [NoiserConfig; 2] {
    [NoiseDistribution::Normal, NoiseDistribution::Rademacher].map(|d| config.clone().with_distribution(d).into())
}

/// Cached noise is drawn once for a noise epoch and gives the same model; a table gives another one.
#[test]
fn noise_sources() {
    let mut digests = Vec::new();
    for noiser in distributions(EggrollConfig::new().with_rank(2)) {
        let config = EvolutionStrategyConfig { noiser, ..config() }.with_noise_reuse(2);
        let with = |source| bytes(&run(config.clone().with_noise_source(source), 4));
        let drawn = with(NoiseSourceConfig::OnTheFly);
        assert_eq!(with(NoiseSourceConfig::Cached), drawn);
        digests.extend([with(NoiseSourceConfig::Table { len: 4096 }), drawn]);
    }
    // Canary: both sources and both distributions differ.
    assert!((1..digests.len()).all(|i| !digests[..i].contains(&digests[i])), "{digests:?}");

    let net = Net::new();
    let config = config().with_noise_reuse(2).with_noise_source(NoiseSourceConfig::Cached);
    let mut strategy = config.init(&net);
    let before = counters::snapshot();
    let (first, again) = (strategy.ask(), strategy.ask());
    first.evaluate(|members| score(&net, members));
    let fitness = again.evaluate(|members| score(&net, members));
    let mut net = net;
    strategy.tell(&mut net, again, fitness).expect("a generation");
    generation(&mut strategy, net);
    // Ten pairs; rank 2 of 4 + 6 and of 6 + 2, biases of 6 and of 2; four bytes each: drawn once for two generations.
    assert_eq!((counters::snapshot() - before).noise_bytes, 10 * 4 * (2 * 10 + 6 + 2 * 8 + 2));

    let short = self::config().with_noise_source(NoiseSourceConfig::Table { len: 19 }).try_init(&Net::new());
    let message =
        "a noise table of 19 elements is shorter than the 20 elements of one pair's noise of \"first.weight\"";
    assert_eq!(short.err().expect("too short").to_string(), message);
}

#[test]
fn every_optimizer_and_noiser_improves() {
    let signs = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
    let noisers = [NoiserConfig::from(EggrollConfig::new()), signs.into(), OpenEsConfig::new().into()];
    let momentum = MomentumConfig::new();
    let optimizers: [(OptimizerConfig, f64); 4] = [
        (SgdConfig::new().into(), 1.0),
        (SgdConfig::new().with_momentum(Some(momentum)).into(), 0.2),
        (AdamConfig::new().into(), 0.02),
        (AdamWConfig::new().into(), 0.02),
    ];
    let loss = |net: &Net| -> f32 { (net.forward(input()) - 0.5).square().mean().into_scalar() };
    for noiser in noisers {
        for (optimizer, rate) in &optimizers {
            let config = EvolutionStrategyConfig::new(noiser.clone(), optimizer.clone())
                .with_population_size(64)
                .with_learning_rate(*rate);
            let (before, after) = (loss(&Net::new()), loss(&run(config, 60)));
            assert!(after < 0.3 * before, "{noiser:?} {optimizer:?}: {before} {after}");
        }
    }
}

#[test]
fn constant_fitness_moves_nothing() {
    let optimizer = AdamWConfig::new().with_weight_decay(0.1);
    let net = Net::new();
    let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer).with_population_size(8).init(&net);
    let net = generation(&mut strategy, net); // fills the momenta
    let before = bytes(&net);
    for constant in [0.0, 3.7, f32::NAN] {
        let population = strategy.ask();
        let mut net = net.clone();
        strategy.tell(&mut net, population, vec![constant; 8].into()).expect("a generation");
        assert_eq!(bytes(&net), before);
        assert!(!strategy.report().expect("a report").stepped);
    }
}

#[test]
fn frozen_parameters_do_not_move() {
    let optimizer = AdamWConfig::new().with_weight_decay(0.5);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer).with_population_size(16);
    let (start, end) = (Net::new(), run(config.clone().with_frozen(["first", "second.bias"]), 3));
    let values = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().expect("f32");
    assert_eq!(values(start.first.weight.val()), values(end.first.weight.val()));
    assert_ne!(values(start.second.weight.val()), values(end.second.weight.val()));
    let bias = |net: &Net| net.second.bias.as_ref().expect("a bias").val().into_data();
    assert_eq!(bias(&start), bias(&end));
    let unknown = config.with_frozen(["third"]).try_init(&Net::new()).err().expect("refused");
    assert!(
        unknown.to_string().contains("\"third\" matches no parameter") && unknown.to_string().contains("second.bias")
    );
}

#[test]
fn non_finite_fitness_is_ranked_and_reported() {
    let net = Net::new();
    let mut strategy = config().with_population_size(4).init(&net);
    let population = strategy.ask();
    strategy.tell(&mut net.clone(), population, vec![1.0, f32::NAN, 3.0, f32::INFINITY].into()).expect("a generation");
    let report = strategy.report().expect("a report");
    assert_eq!((report.non_finite, report.fitness_worst, report.fitness_best), (2, 1.0, 3.0));
}

#[test]
fn noise_reuse_addresses() {
    let noise =
        |reuse: u64, generation: u64| config().with_noise_reuse(reuse).noise_generation(generation).expect("small");
    assert_eq!([noise(1, 7), noise(0, 7), noise(3, 7), noise(3, 9)], [7, 0, 2, 3]);
    assert!(config().noise_generation(1 << 33).is_err());
}

#[test]
fn refusals_name_the_value() {
    let refuse = |config: EvolutionStrategyConfig, part: &str| {
        let message = config.try_init(&Net::new()).err().expect("refused").to_string();
        assert!(message.contains(part), "{message}");
    };
    for population in [0, 1, 7] {
        refuse(config().with_population_size(population), &format!("not {population}"));
    }
    for sigma in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        refuse(config().with_sigma(sigma), &format!("not {sigma}"));
    }
    refuse(config().with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 1.5, last: None }), "not 1.5");
    refuse(
        config().with_shaping(FitnessShaping::GroupZScore { size: 6 }),
        "a population of 20 cannot be divided into groups of 6 members",
    );
    refuse(config().with_shaping(FitnessShaping::GroupZScore { size: 5 }), "not 5: other groups split mirrored pairs");
    refuse(config().with_chunk_size(0), "not 0 members");
    let cosine = |initial| burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig::new(initial, 10);
    refuse(config().with_learning_rate(cosine(-1.0)), "learning_rate.Cosine.initial_lr must be 0 or above");
    refuse(config().with_learning_rate(cosine(2.0)), "invalid learning-rate schedule: Initial learning rate must be");
    let rank = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(0), AdamConfig::new());
    refuse(rank, "rank of EGGROLL must be at least 1, not 0");
    refuse(config().with_frozen(["first", "second"]), "no parameter to train");
}

#[test]
fn tell_refuses_what_does_not_belong_together() {
    let net = Net::new();
    let mut strategy = config().init(&net);
    let refuse =
        |strategy: &mut EvolutionStrategy, net: &Net, population: Population, fitness: Vec<f32>, part: &str| {
            let error = strategy.tell(&mut net.clone(), population, fitness.into()).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        };
    let population = strategy.ask();
    refuse(&mut strategy, &net, population, vec![1.0; 19], "of a population of 20, found 19 values");
    let population = strategy.ask();
    refuse(&mut strategy, &Net::new(), population, vec![1.0; 20], "not the model that the strategy was made for");
    let stale = strategy.ask();
    let net = generation(&mut strategy, net);
    refuse(&mut strategy, &net, stale, vec![1.0; 20], "population of generation 0, but generation 1 is due");
    assert_eq!(strategy.generation(), 1);
}

/// A weight that f32 holds and half precision does not would make all parameters infinite.
#[test]
fn weights_beyond_half_precision_are_refused() {
    let run = |dtype| {
        let first = layer(3, 2);
        let layer = Linear { weight: first.weight.map(|weight| weight.cast(dtype)), bias: None };
        let config = EvolutionStrategyConfig::new(OpenEsConfig::new(), SgdConfig::new()).with_population_size(16);
        let config = config.with_sigma(1e-3).with_gradient_scale(GradientScale::ScoreFunction);
        let mut strategy = config.with_shaping(FitnessShaping::Raw).init(&layer);
        let population = strategy.ask();
        let x = Tensor::<2>::ones([1, 3], (&Device::flex(), dtype));
        let fitness = population.evaluate(|members| {
            let y = layer.forward(members.repeat(x.clone()));
            (members.mean(y).cast(DType::F32)) * 1e4
        });
        strategy.tell(&mut layer.clone(), population, fitness).map(drop)
    };
    assert!(matches!(run(DType::F16), Err(Error::Tell(TellError::PairWeight { .. }))), "{:?}", run(DType::F16));
    assert!(run(DType::F32).is_ok(), "canary");
}

#[test]
fn parameters_left_out_are_named() {
    let net = Net::new();
    let mut strategy = config().init(&net);
    let left_out = |error: Error| {
        assert!(
            matches!(&error, Error::Tell(TellError::NeverPerturbed(names)) if names == &["second.weight", "second.bias"]),
            "{error}"
        )
    };
    let population = strategy.ask();
    let fitness = population.evaluate(|members| members.mean(net.first.forward_shared(input())));
    left_out(strategy.tell(&mut net.clone(), population, fitness).expect_err("refused"));
    // A forward on another thread is outside the scope.
    let population = strategy.ask();
    let fitness = population.evaluate(|members| {
        let hidden = net.first.forward_shared(input());
        let outside =
            std::thread::scope(|threads| threads.spawn(|| net.second.forward(hidden)).join().expect("no panic"));
        members.mean(outside)
    });
    left_out(strategy.tell(&mut net.clone(), population, fitness).expect_err("refused"));
}

#[test]
#[should_panic(expected = "fitness of shape [3] for a chunk of 20 members")]
fn a_closure_of_the_wrong_length_panics() {
    let net = Net::new();
    let population = config().with_chunk_size(20).init(&net).ask();
    population.evaluate_mut(|_| Tensor::<1>::ones([3], &Device::flex()));
}

#[test]
fn evaluate_may_be_repeated_and_nothing_is_perturbed_outside() {
    let net = Net::new();
    let strategy = config().init(&net);
    let plain = net.forward(input()).into_data();
    let (a, b) = (strategy.ask(), strategy.ask());
    assert_eq!(a.evaluate(|members| score(&net, members)), b.evaluate(|members| score(&net, members)));
    assert_eq!(net.forward(input()).into_data(), plain);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        a.evaluate(|_| -> Tensor<1> { panic!("the closure") })
    }));
    assert!(panicked.is_err());
    assert_eq!(net.forward(input()).into_data(), plain);
}
