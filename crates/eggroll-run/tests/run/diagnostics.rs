//! Statistics of models and of fitness, against values by hand.

use burn::module::{Module, Param, ParamId};
use burn::nn::activation::ActivationConfig;
use burn::optim::SgdConfig;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::{Linear, MlpConfig};
use eggroll_run::diagnostics::{
    FloatStatistics, InputStatistics, IntegerStatistics, MemberStatistics, PairStatistics, SplitHalf, StepSize,
    changed_share, diagnose, integer_statistics, step_statistics,
};
use eggroll_train::{EvolutionStrategyConfig, Fitness, FitnessShaping, NoiseScale, SigmaSchedule};

#[derive(Module, Debug)]
struct Pair {
    first: Param<Tensor<2, Int>>,
    second: Param<Tensor<1, Int>>,
}

fn pair(first: [[i32; 2]; 2], second: [i32; 3]) -> Pair {
    let device = Device::flex();
    Pair {
        first: Param::initialized(ParamId::new(), Tensor::from_ints(first, &device)),
        second: Param::initialized(ParamId::new(), Tensor::from_ints(second, &device)),
    }
}

#[test]
fn by_hand() {
    let found = IntegerStatistics::new("w", &[-126, 0, 2, 2, 2, 125, 127, 4]);
    // Sum 136; Σ(v − 17)² = 20449 + 289 + 3·225 + 11664 + 12100 + 169 = 45346
    assert_eq!((found.count, found.mean, found.deviation), (8, 17.0, (45346.0f64 / 8.0).sqrt()));
    // Five values once, one three times of eight: 5·(1/8)·3 + (3/8)·log2(8/3)
    let entropy = 15.0 / 8.0 + 0.375 * (8.0f64 / 3.0).log2();
    assert!((found.entropy - entropy).abs() < 1e-12, "{}", found.entropy);
    assert_eq!((found.saturated, found.zeros), (0.25, 0.125));
    assert_eq!((found.min, found.max), (-126, 127));
    assert_eq!(found.warnings(), ["w: 25.0 % of the values are saturated"]);
    let all: Vec<i64> = (-128..128).collect();
    assert_eq!(IntegerStatistics::new("all", &all).entropy, 8.0);
}

#[test]
fn edges() {
    let none = IntegerStatistics::new("none", &[]);
    assert_eq!((none.count, none.mean, none.deviation, none.entropy, none.min, none.max), (0, 0.0, 0.0, 0.0, 0, 0));
    let constant = IntegerStatistics::new("bias", &[0; 9]);
    assert_eq!((constant.deviation, constant.zeros), (0.0, 1.0));
    let warnings = constant.warnings();
    assert_eq!(warnings, ["bias: 100.0 % of the values are 0", "bias: the entropy of the values is 0.00 bits"]);
}

#[test]
fn thresholds_are_exclusive() {
    // A tenth saturated, half zeros, one bit of entropy: just allowed. One more is too many.
    let values = |saturated, zeros, total| -> Vec<i64> {
        (0..total)
            .map(|i| {
                if i < saturated {
                    127
                } else if i < saturated + zeros {
                    0
                } else {
                    i + 1
                }
            })
            .collect()
    };
    assert!(IntegerStatistics::new("w", &values(2, 10, 20)).warnings().is_empty());
    assert_eq!(IntegerStatistics::new("w", &values(3, 10, 20)).warnings().len(), 1);
    assert_eq!(IntegerStatistics::new("w", &values(2, 11, 20)).warnings().len(), 1);
    assert!(IntegerStatistics::new("w", &[3, 4]).warnings().is_empty());
    assert_eq!(IntegerStatistics::new("w", &[3, 3, 4]).warnings().len(), 1);
}

#[test]
#[should_panic(expected = "128 is not an int8 value")]
fn other_values_are_refused() {
    IntegerStatistics::new("w", &[0, 128]);
}

#[test]
fn models() {
    let model = pair([[1, -1], [0, 0]], [127, 127, -127]);
    let statistics = integer_statistics(&model);
    let paths: Vec<&str> = statistics.iter().map(|tensor| &tensor.path[..]).collect();
    assert_eq!(paths, ["first", "second"]);
    assert_eq!((statistics[0].zeros, statistics[1].saturated), (0.5, 1.0));
    let other = pair([[1, -2], [0, 1]], [127, 127, -127]);
    assert_eq!(changed_share(&model, &other), 2.0 / 7.0);
    assert_eq!(changed_share(&model, &model.clone()), 0.0);
}

#[test]
fn tied_pairs() {
    // Beyond what f32 tells apart: integers are compared as such.
    let exact = Fitness::from(vec![1 << 24, (1 << 24) + 1, 5, 5, -3, -3, 2, 1]);
    assert_eq!(exact.tied_pairs(), 0.5);
    assert_eq!(Fitness::from(vec![0.5, 0.5, f32::NAN, 1.0]).tied_pairs(), 0.5);
    assert_eq!(Fitness::from(Vec::<i32>::new()).tied_pairs(), 0.0);
}

#[test]
fn floats_by_hand() {
    let found = FloatStatistics::new("w", &[2, 3], &[1.0, -2.0, 0.0, 5.0, f64::NAN, f64::INFINITY]);
    // Of 1, −2, 0, 5: mean 1, Σ(v − 1)² = 0 + 9 + 1 + 16
    assert_eq!((found.count, found.non_finite, found.mean, found.deviation), (6, 2, 1.0, 6.5f64.sqrt()));
    assert_eq!((found.zeros, found.min, found.max), (0.25, -2.0, 5.0));
    assert_eq!(found.warnings(), ["w: 2 of 6 values are not finite"]);
    let none = FloatStatistics::new("none", &[0, 3], &[]);
    assert_eq!((none.mean, none.deviation, none.zeros, none.min, none.max), (0.0, 0.0, 0.0, 0.0, 0.0));
    assert!(none.warnings().is_empty());
    let nothing = FloatStatistics::new("w", &[2, 1], &[f64::NAN; 2]);
    assert_eq!(nothing.warnings(), ["w: 2 of 2 values are not finite"]);
    // Half zeros are allowed; a bias of zeros is how it begins, a matrix of one value is not.
    assert!(FloatStatistics::new("w", &[2, 2], &[0.0, 0.0, 1.0, 2.0]).warnings().is_empty());
    let mostly = FloatStatistics::new("w", &[5, 1], &[0.0, 0.0, 0.0, 1.0, 2.0]);
    assert_eq!(mostly.warnings(), ["w: 60.0 % of the values are 0"]);
    assert!(FloatStatistics::new("b", &[3], &[0.0; 3]).warnings().is_empty());
    assert_eq!(FloatStatistics::new("w", &[3, 1], &[2.5; 3]).warnings(), ["w: all values are 2.5"]);
}

#[derive(Module, Debug)]
struct Mixed {
    layer: Linear,
    table: Param<Tensor<1, Int>>,
    positions: Param<Tensor<1, Int>>,
}

#[test]
fn a_diagnosis_of_a_model() {
    let device = Device::flex();
    let weight = Tensor::<2>::from_floats([[0.5, -0.25], [1.0, f32::NAN]], &device);
    let int = |values: &[i32]| Param::initialized(ParamId::new(), Tensor::<1, Int>::from_ints(values, &device));
    let model = Mixed {
        layer: Linear { weight: Param::from_tensor(weight), bias: None },
        table: int(&[127, 127, 1, 2]),
        positions: int(&[0, 1000]),
    };
    let diagnosis = diagnose(&model);
    let warnings = ["layer.weight: 1 of 4 values are not finite", "table: 50.0 % of the values are saturated"];
    assert_eq!(diagnosis.warnings(), warnings);
    assert_eq!((diagnosis.non_finite(), diagnosis.saturated(), diagnosis.entropy()), (1, Some(0.5), Some(1.5)));
    let printed = diagnosis.to_string();
    let lines: Vec<&str> = printed.lines().collect();
    let starts =
        ["parameter", "layer.weight", "positions", "parameter", "table", "warning: layer.weight", "warning: tab"];
    assert_eq!(lines.len(), starts.len(), "{printed}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{printed}");
    assert!(lines[1].contains("[2, 2]") && lines[2].contains("1.0e3"), "{printed}");
}

#[test]
fn pairs_by_hand() {
    // Differences 4, −2, 0, 2; means 1, 2, 3, 2.
    let pairs = PairStatistics::new(&vec![3.0, -1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 1.0].into());
    assert_eq!((pairs.tied, pairs.slope), (0.25, (6.0f64 / 4.0).sqrt()));
    assert_eq!((pairs.curvature, pairs.curvature_to_slope()), (0.5f64.sqrt(), 0.5f64.sqrt() / 1.5f64.sqrt()));
    assert_eq!(pairs.roundings, 2.0 * 1.5f64.sqrt() / (f64::from(f32::EPSILON) * 2.25));
    assert!(pairs.hints(0.1).is_empty());
    // Integers are exact.
    let exact = PairStatistics::new(&vec![1 << 20, (1 << 20) + 1, 0, 5].into());
    assert_eq!(exact.roundings, f64::INFINITY);
    let none = PairStatistics::new(&Vec::<f32>::new().into());
    assert_eq!((none.slope, none.curvature, none.curvature_to_slope()), (0.0, 0.0, 0.0));
}

/// Fitness `−|θ|²` at θ = (1, …, 1): the slope falls and the curvature rises with σ; a constant hides a small σ.
#[test]
fn hints_follow_sigma() {
    let hints = |sigma: f64, constant: f64| {
        let noise = |i: usize| (i as f64 * 1.7).sin();
        let fitness = |pair: usize, sign: f64| -> f32 {
            let theta = (0..8).map(|j| 1.0 + sign * sigma * noise(8 * pair + j));
            (constant - theta.map(|theta| theta * theta).sum::<f64>()) as f32
        };
        let values: Vec<f32> = (0..64).flat_map(|pair| [fitness(pair, 1.0), fitness(pair, -1.0)]).collect();
        PairStatistics::new(&values.into()).hints(sigma)
    };
    assert!(hints(0.1, 0.0).is_empty());
    let large = hints(10.0, 0.0);
    assert!(large.len() == 1 && large[0].starts_with("sigma may be too large: at 10, curvature moves"), "{large:?}");
    assert!(
        large[0].ends_with("unless groups of members have separate data or the return is on a plateau"),
        "{large:?}"
    );
    let small = hints(1e-6, 0.0);
    assert!(small.len() == 1 && small[0].starts_with("sigma may be too small: at 0.000001, the members"), "{small:?}");
    let hidden = hints(0.001, 1e6);
    assert!(hidden.len() == 1 && hidden[0].contains("of the pairs have equal fitness. Raise it"), "{hidden:?}");
}

/// A task whose scores are all higher says nothing of the curvature.
#[test]
fn tasks_have_means_of_their_own() {
    let scores = vec![2.0, 0.0, 1.0, 3.0, 102.0, 100.0, 101.0, 103.0];
    let one = PairStatistics::new(&scores.clone().into());
    let two = PairStatistics::new(&Fitness::from(scores).with_tasks(2));
    assert_eq!((two.slope, two.curvature), (1.0, 0.5));
    assert!(one.curvature > 49.0, "canary");
}

/// Each fault of members, made: what is said of it, and that a healthy generation is silent.
#[test]
fn faults_of_members_are_said() {
    let healthy = |member: usize| (member as f32 * 2.3).sin();
    let warnings = |shaping: &FitnessShaping, score: &dyn Fn(usize) -> f32| {
        MemberStatistics::new(&(0..64).map(score).collect::<Vec<f32>>().into(), Some(shaping)).warnings()
    };
    let (standardized, ranks) = (FitnessShaping::Standardized, FitnessShaping::CenteredRank);
    for shaping in [&standardized, &ranks, &FitnessShaping::GroupStandardized { size: 8 }] {
        assert!(warnings(shaping, &healthy).is_empty(), "{shaping:?}");
        assert!(warnings(shaping, &|_| 1.0).is_empty(), "equal scores are tied, not dead: {shaping:?}");
    }
    let failing = |share: usize| move |member: usize| if member % 4 < share { f32::NAN } else { healthy(member).abs() };
    // The worst finite score is one of them.
    let dead = warnings(&standardized, &failing(3));
    assert!(dead.len() == 1 && dead[0].starts_with("members may be dead: 76.6 % have the lowest score"), "{dead:?}");
    assert!(warnings(&standardized, &failing(1)).is_empty());
    let outlier = |member: usize| if member == 11 { 1e3 } else { healthy(member) };
    let one = warnings(&standardized, &outlier);
    assert!(one.len() == 1 && one[0].starts_with("one pair decides: pair 5 of 32 has 100.0 %"), "{one:?}");
    assert!(one[0].ends_with("ranks, as centered_rank does"), "{one:?}");
    assert!(warnings(&ranks, &outlier).is_empty(), "the remedy");
    let loud = |member: usize| if member / 8 == 3 { 50.0 * healthy(member) } else { healthy(member) };
    let one = warnings(&FitnessShaping::GroupZScore { size: 8 }, &loud);
    assert!(one.len() == 1 && one[0].starts_with("one group decides: group 3 of 8 has 99."), "{one:?}");
    assert!(warnings(&FitnessShaping::GroupStandardized { size: 8 }, &loud).is_empty(), "the remedy");
    // Votes have one weight each.
    assert_eq!(MemberStatistics::new(&(0..64).map(outlier).collect::<Vec<f32>>().into(), None).share, 0.0);
    assert_eq!(MemberStatistics::new(&Vec::<f32>::new().into(), Some(&ranks)).dead, 0.0);
}

/// Each fault of activations, made in the first layer of a network and said of the inputs of the second.
#[test]
fn faults_of_activations_are_said() {
    let device = Device::flex();
    let warnings = |activation: ActivationConfig, scale: f32, shift: f32, shares: bool| {
        device.seed(3);
        let mut model = MlpConfig::new(vec![4, 32, 2]).with_activation(activation.clone()).init(&device);
        let first = &mut model.layers[0];
        first.weight = Param::from_tensor(first.weight.val() * scale);
        first.bias = first.bias.take().map(|bias| Param::from_tensor(bias.val() + shift));
        let x = Tensor::<1, Int>::arange(0..64, &device).float().sin().reshape([16, 4]);
        let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).init(&model);
        let population = strategy.ask();
        assert!(InputStatistics::of_layers(&population).is_empty(), "nothing was asked for");
        population.observe_inputs();
        population.evaluate(|members| {
            if !shares {
                return members.mean(model.forward(members.repeat(x.clone())));
            }
            let hidden = model.activation.forward(model.layers[0].forward_shared(x.clone()));
            members.mean(model.layers[1].forward(hidden))
        });
        let statistics = InputStatistics::of_layers(&population);
        assert_eq!(statistics.len(), if shares { 1 } else { 2 }, "rows that all share are data");
        statistics.iter().flat_map(InputStatistics::warnings).collect::<Vec<_>>()
    };
    for activation in [ActivationConfig::Tanh, ActivationConfig::Relu] {
        for shares in [false, true] {
            assert!(warnings(activation.clone(), 1.0, 0.0, shares).is_empty(), "{activation:?}");
        }
    }
    let saturated = warnings(ActivationConfig::Tanh, 100.0, 0.0, true);
    assert!(saturated.len() == 1 && saturated[0].starts_with("activations may be saturated: "), "{saturated:?}");
    assert!(saturated[0].contains("inputs of \"layers.1.weight\""), "{saturated:?}");
    let dead = warnings(ActivationConfig::Relu, 1.0, -9.0, false);
    assert!(
        dead.len() == 1 && dead[0].starts_with("units may be dead: 100.0 % of the inputs of \"layers.1"),
        "{dead:?}"
    );
}

#[test]
fn halves_by_formula() {
    let split = |correlation| SplitHalf { correlation };
    assert_eq!((split(0.5).signal_to_noise(), split(0.5).cosine()), (2.0, (2.0f64 / 3.0).sqrt()));
    assert_eq!((split(-0.1).signal_to_noise(), split(-0.1).cosine()), (0.0, 0.0));
    assert_eq!((split(1.0).signal_to_noise(), split(1.0).cosine()), (f64::INFINITY, 1.0));
}

#[derive(Module, Debug)]
struct Moved {
    weight: Param<Tensor<2>>,
    gains: Param<Tensor<1>>,
    frozen: Param<Tensor<1>>,
    table: Param<Tensor<1, Int>>,
}

/// Standard deviations 0.5 and 2; a step of (0.1, 0, 0, −0.1) and of (0.4, 0).
fn moved(step: f32, dtype: DType) -> Moved {
    let device = Device::flex();
    let weight = Tensor::<2>::from_floats([[0.5 + 0.1 * step, -0.5], [0.5, -0.5 - 0.1 * step]], &device);
    let gains = Tensor::<1>::from_floats([5.0 + 0.4 * step, 1.0], &device);
    Moved {
        weight: Param::initialized(ParamId::from(1), weight.cast(dtype)),
        gains: Param::initialized(ParamId::from(2), gains.cast(dtype)),
        frozen: Param::initialized(ParamId::from(3), Tensor::<1>::full([3], step, &device)),
        table: Param::initialized(ParamId::from(4), Tensor::<1, Int>::from_ints([step as i32, 1], &device)),
    }
    .set_require_grad(true)
}

#[test]
fn steps_by_hand() {
    let (before, after) = (moved(0.0, DType::F32), moved(1.0, DType::F32));
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_sigma(0.1);
    let config = config.with_frozen(["frozen"]);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");

    let step = step_statistics(&config.init(&before), &before, &after);
    let paths: Vec<(&str, usize)> = step.parameters.iter().map(|step| (&step.path[..], step.count)).collect();
    assert_eq!(paths, [("weight", 4), ("gains", 2)]);
    let [weight, gains] = &step.parameters[..] else { panic!("two") };
    assert_eq!((weight.changed, gains.changed, step.total.changed, step.total.count), (0.5, 0.5, 0.5, 6));
    near(weight.step, (0.02f64 / 4.0).sqrt());
    near(weight.to_noise, (0.02f64 / 4.0).sqrt() / 0.1);
    near(weight.to_weights, (0.02f64 / 1.0).sqrt());
    near(gains.to_weights, (0.16f64 / 26.0).sqrt());
    near(step.total.step, (0.18f64 / 6.0).sqrt());
    near(step.total.to_noise, (0.18f64 / 6.0).sqrt() / 0.1);
    near(step.total.to_weights, (0.18f64 / 27.0).sqrt());

    // Each in units of its own noise.
    let relative = config.clone().with_noise_scale(NoiseScale::RelativeToSpread).init(&before);
    let step = step_statistics(&relative, &before, &after);
    near(step.parameters[0].to_noise, (0.02f64 / 4.0).sqrt() / (0.1 * 0.5));
    near(step.parameters[1].to_noise, (0.16f64 / 2.0).sqrt() / (0.1 * 2.0));
    near(step.total.to_noise, ((0.02 / 0.25 + 0.16 / 4.0) / 6.0f64).sqrt() / 0.1);

    let printed = step.to_string();
    let starts = ["parameter", "weight", "gains", "all"];
    assert_eq!(printed.lines().count(), 4, "{printed}");
    assert!(printed.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{printed}");
    assert!(printed.contains("50.00 %") && printed.contains("step RMS"), "{printed}");

    let none = step_statistics(&config.init(&before), &before, &before);
    let StepSize { changed, step, to_noise, to_weights, .. } = none.total;
    assert_eq!((changed, step, to_noise, to_weights), (0.0, 0.0, 0.0, 0.0));
}

/// The sigma of the generation told last; half precision; more values than one task sums up.
#[test]
fn steps_of_a_generation() {
    let before = moved(0.0, DType::BF16);
    let sigma = SigmaSchedule::Exponential { initial: 0.4, decay: 0.5, last: None };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_sigma(sigma);
    let mut strategy = config.with_frozen(["frozen"]).with_population_size(4).with_learning_rate(1e-4).init(&before);
    let mut after = before.clone();
    let population = strategy.ask();
    strategy.tell(&mut after, population, vec![1.0, 0.0, 0.0, 0.5].into()).expect("a generation");
    let step = step_statistics(&strategy, &before, &after);
    assert_eq!(step.total.changed, 0.0, "lost to rounding");
    let far = step_statistics(&strategy, &before, &moved(1.0, DType::BF16));
    assert!((far.parameters[1].to_noise - 0.08f64.sqrt() / 0.4).abs() < 0.02, "{far}");

    let weight = |shift: f32| {
        let values: Vec<f32> =
            (0..300 * 500).map(|i| (i as f32 * 0.37).sin() + if i % 4 == 0 { shift } else { 0.0 }).collect();
        let weight = Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape([300, 500]);
        Linear { weight: Param::initialized(ParamId::from(1), weight).set_require_grad(true), bias: None }
    };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_sigma(0.1);
    let step = step_statistics(&config.init(&weight(0.0)), &weight(0.0), &weight(0.5)).total;
    assert_eq!((step.count, step.changed), (150_000, 0.25));
    assert!((step.to_noise - 2.5).abs() < 1e-5 && (step.to_weights - 0.25 / 0.5f64.sqrt()).abs() < 1e-3, "{step}");
}

#[test]
#[should_panic(expected = "statistics of a step: a model has no \"weight\" of shape [2, 2]")]
fn steps_of_other_models_are_refused() {
    let before = moved(0.0, DType::F32);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    let mut other = before.clone();
    other.weight = Param::from_tensor(Tensor::zeros([2, 2], &Device::flex()));
    step_statistics(&config.init(&before), &before, &other);
}
