//! What every registered noiser keeps under every shaping rule, and every role of a parameter.

use burn::module::{Module, Param, ParamId};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_core::{EggrollConfig, NoiserConfig, Role};
use eggroll_nn::{Linear, integer};
use eggroll_run::*;
use eggroll_train::*;
use std::f64::consts::PI;

/// The default group of the noiser with baselines.
const GROUP: usize = 8;
const POPULATION: usize = 4 * GROUP;
const RULES: [FitnessShaping; 11] = [
    FitnessShaping::Raw,
    FitnessShaping::Standardized,
    FitnessShaping::ZScore,
    FitnessShaping::SampleZScore,
    FitnessShaping::GroupZScore { size: GROUP },
    FitnessShaping::GroupStandardized { size: GROUP },
    FitnessShaping::CenteredRank,
    FitnessShaping::Utilities,
    FitnessShaping::TopPairs { pairs: GROUP },
    FitnessShaping::PairSign,
    FitnessShaping::BaselineSubtraction { size: GROUP },
];

/// A model and what its members are scored by.
trait Subject {
    type Model: Module + Sync;
    type Score: Scores;

    fn model() -> Self::Model;
    fn score(model: &Self::Model, members: &MemberChunk) -> Self::Score;
}

/// `−½·|x·W + b − T|²` with unit vectors for rows: a quadratic of weight and bias.
struct Quadratic;

const SHAPE: [usize; 2] = [6, 4];

fn sines<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 0.7 + phase).sin()).collect();
    Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape(shape)
}

impl Subject for Quadratic {
    type Model = Linear;
    type Score = Tensor<1>;

    fn model() -> Linear {
        let bias = Param::from_tensor(sines([SHAPE[1]], 1.0));
        Linear { weight: Param::from_tensor(sines(SHAPE, 0.0)), bias: Some(bias) }
    }

    fn score(model: &Linear, members: &MemberChunk) -> Tensor<1> {
        let error = model.forward_shared(Tensor::eye(SHAPE[0], &Device::flex())) - members.repeat(sines(SHAPE, 2.0));
        members.mean(error.square()) * (-0.5 * (SHAPE[0] * SHAPE[1]) as f32)
    }
}

/// Log-likelihood of class 2, in integers.
struct Votes;

impl Subject for Votes {
    type Model = integer::Linear;
    type Score = Tensor<1, Int>;

    fn model() -> integer::Linear {
        let weight = Tensor::<2, Int>::from_data([[3i8, -4, 5, -6]; 16], (&Device::flex(), DType::I8));
        integer::Linear { weight: Param::initialized(ParamId::new(), weight) }
    }

    fn score(model: &integer::Linear, members: &MemberChunk) -> Tensor<1, Int> {
        let device = Device::flex();
        let x = Tensor::<2, Int>::full([1, 16], 16, (&device, DType::I8));
        let logits = model.forward(members.repeat(x));
        log_likelihood(logits, Tensor::full([members.count()], 2, &device), members.count(), Rounding::Floor)
    }
}

/// One noiser under one rule, perhaps with its own roles.
#[derive(Clone)]
struct NoiserCase {
    name: String,
    config: EvolutionStrategyConfig,
}

impl NoiserCase {
    fn new(noiser: NoiserConfig, rule: FitnessShaping) -> Self {
        let name = format!("{noiser:?}, {rule:?}");
        let config = EvolutionStrategyConfig::new(noiser, AdamConfig::new())
            .with_population_size(POPULATION)
            .with_sigma(0.1)
            .with_learning_rate(0.1)
            .with_shaping(rule)
            .with_seed(3);
        Self { name, config }
    }

    fn is_no_op(&self) -> bool {
        self.config.noiser == NoiserConfig::NoOp
    }

    /// The model after a generation of these scores, and whether it made a step.
    fn told<S: Subject>(&self, scores: impl Into<Fitness>) -> (S::Model, GenerationReport) {
        let mut model = S::model();
        let mut strategy = self.config.init(&model);
        let population = strategy.ask();
        strategy.tell(&mut model, population, scores.into()).expect("a generation");
        (model, *strategy.report().expect("a report"))
    }

    fn evaluated<S: Subject>(&self, chunk: usize, parallel: bool) -> Fitness {
        let model = S::model();
        let population = self.config.clone().with_chunk_size(chunk).init(&model).ask();
        match parallel {
            false => population.evaluate_mut(|members| S::score(&model, members)),
            true => population.evaluate(|members| S::score(&model, members)),
        }
    }

    /// Trains up to a generation.
    fn train<S: Subject>(&self, strategy: &mut EvolutionStrategy, mut model: S::Model, until: u64) -> S::Model {
        while strategy.generation() < until {
            let population = strategy.ask();
            let fitness = population.evaluate(|members| S::score(&model, members));
            strategy.tell(&mut model, population, fitness).expect("a generation");
        }
        model
    }
}

/// Every noiser under every rule that it may have; rules for baselines that a noiser does not have are refused.
fn cases() -> Vec<NoiserCase> {
    let mut cases = Vec::new();
    for name in NoiserConfig::NAMES {
        for rule in RULES.clone() {
            let finds_baselines = matches!(rule, FitnessShaping::BaselineSubtraction { .. });
            let noiser = match name.parse().expect("a registered noiser") {
                // Half of the weights move: its own schedule begins with all of them, also those without votes.
                NoiserConfig::QEggroll(config) => config.with_threshold(0.5, 1).into(),
                noiser => noiser,
            };
            let case = NoiserCase::new(noiser, rule);
            if finds_baselines && case.config.noiser.baselines().is_none() {
                let refused = case.config.try_init(&Quadratic::model()).err().expect("refused").to_string();
                assert!(
                    refused.contains("a baseline in every group of 8 members, but the noiser makes no groups"),
                    "{refused}"
                );
            } else {
                cases.push(case);
            }
        }
    }
    // Every role, of the weight; the bias keeps that of EGGROLL.
    for role in [Role::LowRank { rank: 3 }, Role::Dense, Role::Sparse, Role::Frozen] {
        let NoiserCase { name, config } = NoiserCase::new(EggrollConfig::new().into(), FitnessShaping::Raw);
        cases.push(NoiserCase { name: format!("{name}, {role:?}"), config: config.with_roles([("weight", role)]) });
    }
    cases
}

/// Runs a check that needs no type of model, on the model that the case is for.
macro_rules! check {
    ($check:ident, $case:expr) => {
        match $case.config.noiser {
            NoiserConfig::QEggroll(_) => $check::<Votes>($case),
            _ => $check::<Quadratic>($case),
        }
    };
}

/// Scores that differ from member to member; ties in pair 3.
fn scores() -> Vec<f32> {
    let mut scores: Vec<f32> = (0..POPULATION).map(|member| (member as f32 * 1.3).sin() * 5.0).collect();
    scores[7] = scores[6];
    scores
}

fn swapped(scores: &[f32]) -> Vec<f32> {
    scores.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect()
}

/// What a model moved by, of all parameters.
fn moves<S: Subject>(model: &S::Model) -> Vec<f64> {
    values(model).iter().zip(values(&S::model())).map(|(new, old)| new - old).collect()
}

fn values<M: Module>(model: &M) -> Vec<f64> {
    struct AllValues(Vec<f64>);
    impl burn::module::ModuleVisitor for AllValues {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f64>());
        }
        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
            self.0.extend(param.val().into_data().iter::<f64>());
        }
    }
    let mut values = AllValues(Vec::new());
    model.visit(&mut values);
    values.0
}

#[test]
fn pairs_cancel() {
    fn check<S: Subject>(case: &NoiserCase) {
        let (forth, back) = (case.told::<S>(scores()), case.told::<S>(swapped(&scores())));
        let (forth, back) = (moves::<S>(&forth.0), moves::<S>(&back.0));
        let opposite = forth.iter().zip(&back).all(|(forth, back)| (forth + back).abs() < 1e-5);
        assert!(opposite, "{}: {forth:?} {back:?}", case.name);
        assert_eq!(forth.iter().any(|moved| moved.abs() > 1e-3), !case.is_no_op(), "canary: {}", case.name);
        // Members of a pair that are equal say nothing, however pairs differ.
        let tied: Vec<f32> = scores().chunks(2).flat_map(|pair| [pair[0], pair[0]]).collect();
        let (model, _) = case.told::<S>(tied);
        assert!(moves::<S>(&model).iter().all(|moved| *moved == 0.0), "{}", case.name);
    }
    cases().iter().for_each(|case| check!(check, case));
}

#[test]
fn constant_fitness_gives_no_step() {
    fn check<S: Subject>(case: &NoiserCase) {
        for constant in [0.0, -3.7, f32::NAN, f32::NEG_INFINITY] {
            let (model, report) = case.told::<S>(vec![constant; POPULATION]);
            assert!(!report.stepped && values(&model) == values(&S::model()), "{}, {constant}", case.name);
        }
        assert_eq!(case.told::<S>(scores()).1.stepped, !case.is_no_op(), "canary: {}", case.name);
    }
    cases().iter().for_each(|case| check!(check, case));
}

/// NaN and −∞ are the worst of their group, without groups of the generation, and counted.
#[test]
fn what_is_no_number_is_the_worst() {
    fn check<S: Subject>(case: &NoiserCase) {
        const REPLACED: [usize; 2] = [10, 21];
        let with = |replacement: &dyn Fn(usize) -> f32| {
            let mut scores = scores();
            REPLACED.into_iter().for_each(|member| scores[member] = replacement(member));
            case.told::<S>(scores)
        };
        let size = case.config.shaping.group().unwrap_or(POPULATION);
        let worst = |member: usize| {
            let scores = scores().into_iter().enumerate();
            let others = scores.filter(|(other, _)| !REPLACED.contains(other) && other / size == member / size);
            others.map(|(_, score)| score).fold(f32::INFINITY, f32::min)
        };
        let (expected, _) = with(&worst);
        for not_finite in [f32::NAN, f32::NEG_INFINITY] {
            let (found, report) = with(&|_| not_finite);
            assert_eq!((values(&found), report.non_finite), (values(&expected), 2), "{}, {not_finite}", case.name);
        }
        let same = values(&with(&|_| 9.0).0) == values(&expected);
        assert_eq!(same, case.is_no_op(), "canary: {}", case.name);
    }
    cases().iter().for_each(|case| check!(check, case));
}

/// Members score the same however they are cut into chunks, one after the other or side by side; and not all the same.
#[test]
fn chunks_change_nothing() {
    fn check<S: Subject>(case: &NoiserCase) {
        let whole = case.evaluated::<S>(POPULATION, false);
        for (chunk, parallel) in [(2, false), (6, false), (10, true), (POPULATION, true)] {
            assert_eq!(case.evaluated::<S>(chunk, parallel), whole, "{}, {chunk}, {parallel}", case.name);
        }
        let first = whole.values()[0];
        let perturbed = whole.values().iter().filter(|score| **score != first).count();
        let baselines = case.config.noiser.baselines().map_or(0, |group| 2 * POPULATION / group);
        if case.is_no_op() {
            assert_eq!(perturbed, 0, "{}", case.name);
        } else {
            assert!(perturbed > 0 && perturbed <= POPULATION - baselines, "{}: {perturbed} differ", case.name);
        }
        if baselines > 0 {
            let of_baselines = whole.values().chunks(GROUP).flat_map(|group| &group[..2]);
            assert!(of_baselines.copied().all(|score| score == first), "{}: baselines", case.name);
        }
    }
    cases().iter().for_each(|case| check!(check, case));
}

/// A rule knows no member by its place, but for the baselines of a group: pairs in another order have their weights in that order.
#[test]
fn permutations_of_pairs() {
    let scores: Vec<f64> = scores().into_iter().map(f64::from).collect();
    // The pairs of every group but the first rotate, and the groups change places.
    let moved = |members: &[f64]| -> Vec<f64> {
        let groups: Vec<Vec<f64>> = members
            .chunks(GROUP)
            .map(|group| {
                let mut group = group.to_vec();
                group[2..].rotate_left(2);
                group
            })
            .collect();
        [&groups[2..], &groups[..2]].concat().concat()
    };
    for rule in RULES {
        let (found, expected) = (rule.shape(&moved(&scores)), moved(&rule.shape(&scores)));
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&found, &expected), "{rule:?}: {found:?} {expected:?}");
        assert!(!close(&found, &rule.shape(&scores)), "canary: {rule:?}");
    }
}

/// Saved and loaded, a strategy continues bit for bit; its text says all of it.
#[test]
fn state_round_trip() {
    fn check<S: Subject>(case: &NoiserCase) {
        let start = S::model();
        let straight = case.train::<S>(&mut case.config.init(&start), start.clone(), 6);
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let mut strategy = case.config.init(&start);
        let model = case.train::<S>(&mut strategy, start, 3);
        checkpoints.save(&strategy, &model).expect("saves");
        let (mut strategy, model) = checkpoints.load_latest(S::model()).expect("loads").expect("is there");
        let resumed = case.train::<S>(&mut strategy, model.clone(), 6);
        assert_eq!(parameter_digest(&resumed), parameter_digest(&straight), "{}", case.name);
        let stays = parameter_digest(&model) == parameter_digest(&straight);
        assert_eq!(stays, case.is_no_op(), "canary: {}", case.name);

        let text = serde_json::to_string(&case.config).expect("writes");
        let read: EvolutionStrategyConfig = serde_json::from_str(&text).expect("reads");
        assert_eq!(serde_json::to_string(&read).expect("writes"), text);
        assert_eq!(read.noiser, case.config.noiser);
    }
    cases().iter().for_each(|case| check!(check, case));
}

/// What share of the gradient of a quadratic an estimate of scale [`GradientScale::ScoreFunction`] has in expectation, of the weight and the bias.
fn shares(case: &NoiserCase) -> [f64; 2] {
    let [d_input, d_output] = SHAPE.map(|side| side as f64);
    let sparse = (d_input.max(d_output) / (d_input * d_output)).powi(2);
    let of_role = match case.config.roles.first() {
        Some((_, Role::Sparse)) => sparse,
        Some((_, Role::Frozen)) => 0.0,
        _ => 1.0,
    };
    match &case.config.noiser {
        NoiserConfig::SignEggroll(_) => [2.0 / PI, 1.0],
        NoiserConfig::Sparse(_) => [sparse, 1.0],
        NoiserConfig::BaselineSubtraction(config) => [1.0 - 2.0 / config.group as f64; 2],
        NoiserConfig::NoOp => [0.0; 2],
        _ => [of_role, 1.0],
    }
}

/// Under raw fitness the mean of many estimates is the share of the gradient that the noiser says, within five standard errors; other
/// rules keep its direction.
#[test]
fn estimates_of_a_quadratic() {
    const ROUNDS: u64 = 250;
    let model = Quadratic::model();
    let (weight, bias) = (model.weight.val(), model.bias.as_ref().expect("a bias").val());
    let error = weight + bias.unsqueeze() - sines(SHAPE, 2.0);
    let of_bias = error.clone().sum_dim(0).reshape([SHAPE[1]]);
    let gradient =
        [error.into_data().try_to_vec::<f32>().expect("f32"), of_bias.into_data().try_to_vec().expect("f32")];
    for case in cases().into_iter().filter(|case| !matches!(case.config.noiser, NoiserConfig::QEggroll(_))) {
        let shares = shares(&case);
        let expected: Vec<f64> = gradient
            .iter()
            .zip(shares)
            .flat_map(|(part, share)| part.iter().map(move |g| share * f64::from(*g)))
            .collect();
        let config = EvolutionStrategyConfig { optimizer: SgdConfig::new().into(), ..case.config.clone() };
        let config = config.with_gradient_scale(GradientScale::ScoreFunction).with_clip_norm(None);
        let (mut sum, mut squares) = (vec![0.0; expected.len()], vec![0.0; expected.len()]);
        for seed in 0..ROUNDS {
            let strategy = config.clone().with_seed(seed).init(&model);
            let population = strategy.ask();
            let fitness = population.evaluate(|members| Quadratic::score(&model, members));
            let Some(estimate) = strategy.gradient(&model, &population, &fitness).expect("belongs together") else {
                continue;
            };
            let weight = estimate.get::<2>(model.weight.id).unwrap_or_else(|| Tensor::zeros(SHAPE, &Device::flex()));
            let bias = estimate.get::<1>(model.bias.as_ref().expect("a bias").id).expect("an estimate");
            for (i, g) in weight.into_data().iter::<f64>().chain(bias.into_data().iter::<f64>()).enumerate() {
                sum[i] += g / ROUNDS as f64;
                squares[i] += g * g / ROUNDS as f64;
            }
        }
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let errors =
            sum.iter().zip(&squares).map(|(mean, square)| ((square - mean * mean).max(0.0) / ROUNDS as f64).sqrt());
        let within = |sign: f64| {
            let mut all = sum.iter().zip(errors.clone()).zip(&expected);
            all.all(|((mean, error), expected)| (mean - sign * expected).abs() <= 5.0 * error)
        };
        match (case.is_no_op(), case.config.shaping) {
            (true, _) => assert_eq!(length(&sum), 0.0, "{}", case.name),
            (_, FitnessShaping::Raw) => {
                assert!(within(1.0), "{}: {sum:?} {expected:?}", case.name);
                assert!(!within(-1.0), "canary: {}", case.name);
            }
            _ => {
                let product: f64 = sum.iter().zip(&expected).map(|(a, b)| a * b).sum();
                let cosine = product / (length(&sum) * length(&expected));
                assert!(cosine > 0.9, "{}: {cosine}", case.name);
            }
        }
    }
}

/// Votes raise the weights of the class that is asked for and lower the others, under every rule: signs of pairs know no rule.
#[test]
fn votes_go_uphill() {
    for case in cases().iter().filter(|case| matches!(case.config.noiser, NoiserConfig::QEggroll(_))) {
        let mut columns = [0.0; 4];
        for seed in 0..40 {
            let case = NoiserCase { config: case.config.clone().with_seed(seed), ..case.clone() };
            let fitness = case.evaluated::<Votes>(POPULATION, false);
            let scores = fitness.integers().expect("integers").to_vec();
            let (model, _) = case.told::<Votes>(scores);
            moves::<Votes>(&model).iter().enumerate().for_each(|(i, moved)| columns[i % 4] += moved);
        }
        let others = [columns[0], columns[1], columns[3]];
        assert!(columns[2] > 0.0 && others.iter().all(|other| *other < columns[2]), "{}: {columns:?}", case.name);
    }
}
