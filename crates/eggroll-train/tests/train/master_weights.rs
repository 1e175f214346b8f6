//! f32 master weights of half-precision parameters.

use crate::support::{Cast, Net, bytes, input, layer};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{AdamConfig, AdamWConfig, LionConfig, SgdConfig};
use burn::tensor::{DType, Tensor};
use eggroll_core::{EggrollConfig, NoiseSourceConfig, NoiserConfig, OpenEsConfig};
use eggroll_train::*;

const MEMBERS: usize = 8;
const HALVES: [DType; 2] = [DType::BF16, DType::F16];

/// Values well between 1 and 2, where neighbors in bf16 differ by 1/128, in f16 by 1/1024.
struct AroundOne;

impl ModuleMapper for AroundOne {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value.tanh() * 0.4 + 1.5)
    }
}

/// Makes all values this one.
struct Fill(f32);

impl ModuleMapper for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value.full_like(self.0))
    }
}

/// All values, as f64.
fn values<M: Module>(model: &M) -> Vec<f64> {
    struct WeightValues(Vec<f64>);
    impl ModuleVisitor for WeightValues {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f64>());
        }
    }
    let mut values = WeightValues(Vec::new());
    model.visit(&mut values);
    values.0
}

fn start(dtype: DType) -> Net {
    Net::new().map(&mut AroundOne).map(&mut Cast(dtype))
}

fn config(optimizer: impl Into<OptimizerConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer)
        .with_population_size(MEMBERS)
        .with_sigma(0.1)
        .with_learning_rate(2e-4)
        .with_noise_reuse(0)
        .with_master_weights(true)
}

fn fitness() -> Fitness {
    (0..MEMBERS).map(|member| (member as f32 * 1.7).sin()).collect::<Vec<_>>().into()
}

fn generation<M: Module>(strategy: &mut EvolutionStrategy, model: &mut M) {
    let population = strategy.ask();
    strategy.tell(model, population, fitness()).expect("a generation");
}

fn trained<M: Module>(config: &EvolutionStrategyConfig, start: &M, generations: usize) -> M {
    let mut model = start.clone();
    let mut strategy = config.init(&model);
    (0..generations).for_each(|_| generation(&mut strategy, &mut model));
    model
}

fn masters(strategy: &EvolutionStrategy) -> KeptTensors {
    strategy.to_record().masters.expect("masters")
}

/// With the same fitness the master weights are the parameters of an f32 model, bit for bit: so are steps, moments, decays and clipping.
#[test]
fn small_steps_add_up() {
    let optimizers: [OptimizerConfig; 5] = [
        SgdConfig::new().into(),
        AdamConfig::new().into(),
        AdamWConfig::new().with_weight_decay(0.5).into(),
        LionConfig::new().into(),
        ClipUpConfig::new().into(),
    ];
    for dtype in HALVES {
        let half = start(dtype);
        let wide = half.clone().map(&mut Cast(DType::F32));
        for optimizer in optimizers.clone() {
            let rate = if matches!(optimizer, OptimizerConfig::Sgd(_)) { 0.02 } else { 2e-4 };
            let config = config(optimizer).with_learning_rate(rate).with_anchor_decay(0.3).with_clip_norm(0.4);
            let found = trained(&config, &half, 60);
            let expected = trained(&config, &wide, 60);
            assert_eq!(bytes(&found), bytes(&expected.map(&mut Cast(dtype))), "{:?}", config.optimizer);
            assert_ne!(bytes(&found), bytes(&half), "canary: it moves, {:?}", config.optimizer);
        }
        // Canary: in bf16 every single step is below half of the distance to the next number.
        let with = config(AdamConfig::new());
        if dtype == DType::BF16 {
            let without = trained(&with.clone().with_master_weights(false), &half, 60);
            assert_eq!(bytes(&without), bytes(&half), "without masters");
            assert_ne!(bytes(&without), bytes(&trained(&with, &half, 60)), "without masters");
        }
    }
}

/// Squares of small gradients are 0 in f16, and Burn reads states as f32: states are in f32, with masters and without.
#[test]
fn all_optimizers_step_and_continue() {
    for dtype in HALVES {
        for name in OptimizerConfig::NAMES.iter().filter(|name| !name.starts_with("integer")) {
            let rate = if *name == "sgd" { 1.0 } else { 0.02 };
            let config = config(name.parse::<OptimizerConfig>().expect("a name")).with_learning_rate(rate);
            for config in [config.clone(), config.with_master_weights(false)] {
                let mut model = start(dtype);
                let mut strategy = config.init(&model);
                (0..3).for_each(|_| generation(&mut strategy, &mut model));
                assert_ne!(bytes(&model), bytes(&start(dtype)), "canary: {name} moves in {dtype:?}");
                let mut again = model.clone();
                let mut resumed = config.init(&again).try_load_record(strategy.to_record()).expect("loads");
                (0..3).for_each(|_| generation(&mut strategy, &mut model));
                (0..3).for_each(|_| generation(&mut resumed, &mut again));
                assert_eq!(bytes(&again), bytes(&model), "{name} in {dtype:?}");
                assert!(values(&model).iter().all(|value| value.is_finite()), "{name} in {dtype:?}");
            }
        }
    }
}

/// Burn reads a state as f32, which a step in f64 could not take.
#[test]
fn states_in_f64_are_refused() {
    let config = config(AdamConfig::new());
    let mut model = start(DType::F64);
    let mut strategy = config.init(&model);
    let fresh = config.init(&model).try_load_record(strategy.to_record());
    assert!(fresh.is_ok(), "canary: without a state");
    generation(&mut strategy, &mut model);
    let error = config.init(&model).try_load_record(strategy.to_record()).err().expect("a state in f64");
    assert!(error.to_string().contains("is in f64"), "{error}");
}

/// A step of rate 10 after the gradient has fallen to a hundredth: `10·m/√v`.
fn step_after_fall(model: &Net, master_weights: bool) -> f64 {
    let adam = AdamConfig::new().with_beta_2(0.9985).with_epsilon(1e-8);
    let config = config(adam).with_shaping(FitnessShaping::Raw).with_master_weights(master_weights);
    let mut strategy = config.init(model);
    let mut model = model.clone();
    let mut tell = |rate: f64, size: f32| {
        strategy.set_learning_rate(rate).expect("a rate");
        let fitness: Vec<f32> = fitness().values().iter().map(|score| score * size).collect();
        let population = strategy.ask();
        let before = values(&model);
        strategy.tell(&mut model, population, fitness.into()).expect("a generation");
        let steps: Vec<f64> = before.iter().zip(values(&model)).map(|(before, after)| (after - before).abs()).collect();
        steps.iter().sum::<f64>() / steps.len() as f64
    };
    (0..200).for_each(|_| assert_eq!(tell(0.0, 1.0), 0.0));
    (0..2500).for_each(|_| assert_eq!(tell(0.0, 0.01), 0.0));
    tell(10.0, 0.01)
}

/// In bf16 `0.9985·v` would round to `v`, which would never fall again: states are in f32.
#[test]
fn second_moments_fall() {
    let half = Net { first: layer(2, 2), second: layer(2, 1) }.map(&mut AroundOne).map(&mut Cast(DType::BF16));
    let wide = step_after_fall(&half.clone().map(&mut Cast(DType::F32)), false);
    for master_weights in [true, false] {
        let step = step_after_fall(&half, master_weights);
        assert!((step / wide - 1.0).abs() < 0.02, "{step} {wide}");
    }
}

#[test]
fn records_continue_bit_for_bit() {
    let config = config(AdamConfig::new());
    let mut model = start(DType::BF16);
    let mut strategy = config.init(&model);
    (0..7).for_each(|_| generation(&mut strategy, &mut model));
    let saved = model.clone();
    let digest = strategy.master_digest().expect("masters");
    let mut resumed = config.init(&saved).try_load_record(strategy.to_record()).expect("loads");
    assert_eq!(resumed.master_digest(), Some(digest.clone()));
    assert_eq!(config.init(&saved).load_record(strategy.to_record()).master_digest(), Some(digest));
    let fresh = config.init(&saved).to_record().masters;
    let mut forgetful = config.init(&saved).load_record(StrategyRecord { masters: fresh, ..strategy.to_record() });
    let mut models = [saved.clone(), saved.clone(), saved];
    for (strategy, model) in [&mut strategy, &mut resumed, &mut forgetful].into_iter().zip(&mut models) {
        // A step is 0.0002 and half of the distance of neighbors 0.0039: 22 reach it, 15 do not.
        (0..15).for_each(|_| generation(strategy, model));
    }
    assert_eq!(bytes(&models[1]), bytes(&models[0]));
    assert_eq!(resumed.master_digest(), strategy.master_digest());
    assert_ne!(forgetful.master_digest(), strategy.master_digest(), "canary");
    assert_ne!(bytes(&models[2]), bytes(&models[0]), "canary");
}

#[test]
fn other_masters_are_refused() {
    let (on, off) = (config(SgdConfig::new()), config(SgdConfig::new()).with_master_weights(false));
    let half = start(DType::BF16);
    let refused = |config: &EvolutionStrategyConfig, model: &Net, masters: Option<KeptTensors>| {
        let record = StrategyRecord { masters, ..config.init(model).to_record() };
        let error = config.init(model).try_load_record(record).err().expect("refused");
        assert!(matches!(error, RecordError::Masters(_)), "{error}");
        error.to_string()
    };
    let own = || masters(&on.init(&half));
    let none = refused(&on, &half, None);
    assert!(none.contains("of 0 parameters") && none.contains("keeps them for 4"), "{none}");
    let without = refused(&off, &half, Some(own()));
    assert!(without.contains("made without master_weights"), "{without}");
    let wide = refused(&on, &start(DType::F32), Some(own()));
    assert!(wide.contains("of 4 parameters") && wide.contains("keeps them for 0"), "{wide}");
    let other = Net { first: layer(4, 5), second: layer(5, 2) }.map(&mut Cast(DType::BF16));
    let shape = refused(&on, &half, Some(masters(&on.init(&other))));
    assert!(shape.contains("20 values for \"first.weight\" of shape [4, 6]"), "{shape}");
    let dtype = refused(&on, &half, Some(own().map(&mut Cast(DType::BF16))));
    assert!(dtype.contains("the master weights of \"first.weight\" are BF16"), "{dtype}");
    for wrong in [f32::NAN, f32::INFINITY] {
        let error = refused(&on, &half, Some(own().map(&mut Fill(wrong))));
        assert!(error.contains("\"first.weight (f32 master)\"") && error.contains("24 values"), "{error}");
    }
    assert!(on.init(&half).try_load_record(on.init(&half).to_record()).is_ok(), "canary");
}

#[test]
#[should_panic(expected = "the f32 master weights cannot be loaded")]
fn load_record_panics_of_other_masters() {
    let (config, half) = (config(SgdConfig::new()), start(DType::F16));
    config.init(&half).load_record(StrategyRecord { masters: None, ..config.init(&half).to_record() });
}

#[test]
fn models_without_half_precision_are_unaffected() {
    let model = start(DType::F32);
    for optimizer in [OptimizerConfig::from(SgdConfig::new()), AdamConfig::new().into(), ClipUpConfig::new().into()] {
        for noiser in [NoiserConfig::from(EggrollConfig::new()), OpenEsConfig::new().into()] {
            for source in [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached] {
                let on = EvolutionStrategyConfig { noiser: noiser.clone(), ..config(optimizer.clone()) };
                let on = on.with_noise_source(source);
                let off = on.clone().with_master_weights(false);
                assert_eq!(bytes(&trained(&on, &model, 5)), bytes(&trained(&off, &model, 5)));
                let strategy = on.init(&model);
                assert!(strategy.to_record().masters.is_none() && strategy.master_digest().is_none());
            }
        }
    }
    let text = |config: &EvolutionStrategyConfig| serde_json::to_string(config).expect("writes");
    let on = config(SgdConfig::new());
    assert!(text(&on).contains("\"master_weights\":true"));
    assert!(!text(&on.with_master_weights(false)).contains("master_weights"));
}

/// Types may differ within a model: only half precision has copies, and frozen parameters have none.
#[test]
fn only_trained_half_precision_has_masters() {
    let config = config(AdamConfig::new()).with_frozen(["second.bias"]);
    let mut mixed = start(DType::F32);
    mixed.second = mixed.second.map(&mut Cast(DType::F16));
    let mut strategy = config.init(&mixed);
    assert_eq!(values(&masters(&strategy)).len(), 12);
    let mut model = mixed.clone();
    (0..40).for_each(|_| generation(&mut strategy, &mut model));
    let frozen = |net: &Net| net.second.bias.as_ref().expect("a bias").val().into_data();
    assert_eq!(frozen(&model), frozen(&mixed));
    let types = [model.first.weight.val().dtype(), model.second.weight.val().dtype()];
    assert_eq!(types, [DType::F32, DType::F16]);
    let wide = trained(&config, &start(DType::F32), 40);
    assert_eq!(model.first.weight.val().into_data(), wide.first.weight.val().into_data());
}

/// Values that the program has changed are the new masters; the others keep theirs.
#[test]
fn changes_of_the_model_count() {
    let config = config(SgdConfig::new());
    let mut model = start(DType::BF16);
    let mut strategy = config.init(&model);
    (0..3).for_each(|_| generation(&mut strategy, &mut model));
    let before = values(&masters(&strategy));
    assert_ne!(before, values(&model), "canary: masters have more digits");
    let changed = Tensor::<2>::full([1, 1], 3.0, &model.first.weight.val().device()).cast(DType::BF16);
    model.first.weight = model.first.weight.map(|weight| weight.slice_assign([0..1, 0..1], changed));
    strategy.set_learning_rate(0.0).expect("a rate");
    generation(&mut strategy, &mut model);
    let after = values(&masters(&strategy));
    assert_eq!((after[0], &after[1..]), (3.0, &before[1..]));
    assert_eq!(values(&model)[0], 3.0);
}

#[test]
fn advance_leaves_masters_alone() {
    let mut model = start(DType::BF16);
    let mut strategy = config(SgdConfig::new()).init(&model);
    generation(&mut strategy, &mut model);
    let before = strategy.master_digest();
    let population = strategy.ask();
    let gradients = strategy.gradient(&model, &population, &fitness()).expect("belongs together").expect("differs");
    let gradient = gradients.get::<2>(model.first.weight.id).expect("one");
    assert_eq!(gradient.dtype(), DType::F32);
    strategy.advance(population, &fitness()).expect("a generation");
    assert_eq!((strategy.generation(), strategy.master_digest()), (2, before));
}

/// Estimates of held noise, and projected ones, are those without masters up to rounding, in f32.
#[test]
fn every_source_and_projection() {
    for dtype in HALVES {
        let net = Net::new().map(&mut Cast(dtype));
        let x = input().narrow(0, 0, 2).cast(dtype);
        let sources = [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached, NoiseSourceConfig::Table { len: 4096 }];
        let credits = [Credit::Mean, Credit::Parts];
        for (source, credit) in sources.into_iter().flat_map(|s| credits.map(|c| (s, c))) {
            let on = config(SgdConfig::new()).with_noise_source(source).with_credit(credit);
            let gradient = |config: &EvolutionStrategyConfig| {
                let strategy = config.init(&net);
                let population = strategy.ask();
                population.evaluate(|members| members.mean(net.forward(x.clone())));
                strategy.gradient(&net, &population, &fitness()).expect("belongs together").expect("differs")
            };
            let [with, without] = [true, false].map(|masters| gradient(&on.clone().with_master_weights(masters)));
            let types = [&with, &without].map(|g| g.get::<2>(net.first.weight.id).expect("one").dtype());
            assert_eq!(types, [DType::F32, dtype]);
            let cosine = gradient_cosine(&net, &with, &without).expect("in common");
            assert!(cosine > 0.99, "{source:?} {credit:?}: {cosine}");
        }
    }
}

/// An f16 estimate overflows where f32 does not.
#[test]
fn large_fitness_fits_f32() {
    let model = start(DType::F16);
    let on =
        config(SgdConfig::new()).with_shaping(FitnessShaping::Raw).with_gradient_scale(GradientScale::InverseSigma);
    let large = || fitness().values().iter().map(|score| score * 1e8).collect::<Vec<f32>>().into();
    let step = |config: EvolutionStrategyConfig| {
        let mut strategy = config.with_learning_rate(1e-12).init(&model);
        let population = strategy.ask();
        strategy.tell(&mut model.clone(), population, large()).map(drop)
    };
    step(on.clone()).expect("a step");
    for refused in [on.clone().with_master_weights(false), on.with_noise_source(NoiseSourceConfig::Cached)] {
        assert!(matches!(step(refused), Err(Error::Tell(TellError::PairWeight { .. }))));
    }
}
