//! Models and numbers that cannot be trained: refused with the values.

use crate::reliability::support::*;
use burn::module::{Module, Param};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, OpenEsConfig, QEggrollConfig, Role};
use eggroll_run::*;
use eggroll_train::*;

fn refused(config: EvolutionStrategyConfig, model: &impl Module) -> String {
    config.try_init(model).err().expect("refused").to_string()
}

#[derive(Module, Debug)]
struct Hollow {
    full: Param<Tensor<1>>,
    hollow: Param<Tensor<2>>,
}

#[test]
fn parameters_without_values() {
    let device = Device::flex();
    let hollow = Hollow {
        full: Param::from_tensor(Tensor::ones([3], &device)),
        hollow: Param::from_tensor(Tensor::zeros([4, 0], &device)),
    };
    for noiser in [EggrollConfig::new().into(), eggroll_core::NoiserConfig::from(OpenEsConfig::new())] {
        let config = EvolutionStrategyConfig::new(noiser, SgdConfig::new()).with_population_size(4);
        let message = "\"hollow\" of shape [4, 0] has no values to train: freeze it by name";
        assert_eq!(refused(config.clone(), &hollow), message);
        // Frozen, it is in nobody's way.
        let mut strategy = config.with_frozen(["hollow"]).try_init(&hollow).expect("a strategy");
        let population = strategy.ask();
        let mut moved = hollow.clone();
        strategy.tell(&mut moved, population, vec![1.0f32, 2.0, 4.0, 3.0].into()).expect("a generation");
        assert_ne!(moved.full.val().into_data(), hollow.full.val().into_data());
    }
}

#[test]
fn ranks_beyond_a_noise_stream() {
    let net = Net::start();
    let rank = 1usize << 40;
    let expected = format!(
        "one pair's noise of \"first.weight\" of shape [4, 6] has {} elements under LowRank {{ rank: {rank} }}, \
         more than the 17179869184 of a noise stream",
        rank * 10
    );
    let eggroll = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(rank), AdamConfig::new());
    assert_eq!(refused(eggroll, &net), expected);
    let integers = EvolutionStrategyConfig::integer(QEggrollConfig::new().with_rank(usize::MAX));
    assert!(refused(integers, &IntegerNet::start()).contains("more than the 17179869184 of a noise stream"));
    let zero = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let zero = refused(zero.with_roles([("first.weight", Role::LowRank { rank: 0 })]), &net);
    assert!(zero.contains("the rank must be at least 1"), "{zero}");
    // The limits of the two streams of floats, which are asserted where they are drawn: one below is fine there.
    let wide = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(1 << 20), AdamConfig::new());
    assert!(wide.with_memory_limit(u64::MAX).try_init(&net).is_ok());
}

#[test]
fn populations_and_sigmas() {
    let net = Net::start();
    let config = || config(EggrollConfig::new(), AdamConfig::new());
    for population in [0, 7, usize::MAX] {
        let expected = format!("the population must be even, at least 2 and at most 8589934590, not {population}");
        assert_eq!(refused(config().with_population_size(population), &net), expected);
    }
    for sigma in [f64::NAN, f64::INFINITY] {
        let expected = format!("sigma must be positive and finite, not {sigma}");
        assert_eq!(refused(config().with_sigma(sigma), &net), expected);
        let last = SigmaSchedule::Cosine { initial: 0.1, last: sigma, generations: 10 };
        assert_eq!(refused(config().with_sigma(last), &net), expected);
    }
}

/// A fitness or a scale that the weights of the estimate cannot hold would make a model of NaN: nothing happens instead.
#[test]
fn weights_beyond_f32() {
    let net = Net::start();
    let digest = parameter_digest(&net);
    let scores =
        |largest: f32| (0..POPULATION).map(|member| if member == 2 { largest } else { 0.0 }).collect::<Vec<_>>();
    let cases = [(1e38, 1e-3, "inf"), (-1e38, 1e-3, "inf"), (1.0, 1e-30, "inf")];
    for (largest, sigma, weight) in cases {
        let config = config(EggrollConfig::new(), AdamConfig::new())
            .with_shaping(FitnessShaping::Raw)
            .with_gradient_scale(GradientScale::ScoreFunction)
            .with_sigma(sigma);
        let mut strategy = config.init(&net);
        let population = strategy.ask();
        let error =
            strategy.tell(&mut net.clone(), population, scores(largest).into()).expect_err("refused").to_string();
        assert!(error.contains("pair 1") && error.contains(weight) && error.contains(&sigma.to_string()), "{error}");
        assert_eq!(strategy.generation(), 0);
        // The same strategy continues.
        let population = strategy.ask();
        strategy.tell(&mut net.clone(), population, vec![1.0f32; POPULATION].into()).expect("a generation");
        assert_eq!(parameter_digest(&net), digest);
    }
}
