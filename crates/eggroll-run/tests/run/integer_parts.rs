//! Integers that learn from the score of every token.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_core::rng::philox::philox4x32;
use eggroll_nn::integer::{EggModel, EggModelConfig, LinearConfig};
use eggroll_run::{Error, ReplayLog, SavedError, parameter_digest, replay, replay_evaluated};
use eggroll_train::*;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;

const VOCAB: usize = 24;
const WIDTH: usize = 32;
const SEQUENCES: usize = 6;
const STEPS: usize = 12;

/// Tokens and what follows each: a rule with some noise, `[SEQUENCES, STEPS]` both.
fn batch(generation: u32) -> [Tensor<2, Int>; 2] {
    let draw = |sequence: usize, step: usize| philox4x32([sequence as u32, step as u32, generation, 77], [0; 2])[0];
    let mut tokens = Vec::new();
    for sequence in 0..SEQUENCES {
        let mut token = draw(sequence, 100) as usize % VOCAB;
        for step in 0..=STEPS {
            tokens.push(token as i32);
            let other = draw(sequence, step) as usize;
            token = if other.is_multiple_of(8) { other / 8 % VOCAB } else { (token * 5 + 1) % VOCAB };
        }
    }
    let all = TensorData::new(tokens, [SEQUENCES, STEPS + 1]);
    let all = Tensor::<2, Int>::from_data(all, &Device::flex());
    [0, 1].map(|from| all.clone().slice_dim(1, from..from + STEPS))
}

fn model(seed: u64) -> EggModel {
    Device::flex().seed(seed);
    EggModelConfig::new().with_vocab(VOCAB).with_layers(1).with_width(WIDTH).init(&Device::flex())
}

fn config(credit: Credit, seed: u64) -> EvolutionStrategyConfig {
    let noiser = QEggrollConfig::new().with_sigma_shift(3);
    EvolutionStrategyConfig::new(noiser, IntegerAdamWConfig::new())
        .with_population_size(64)
        .with_learning_rate(0.3)
        .with_credit(credit)
        .with_seed(seed)
}

/// A score for every token.
fn by_token(model: &EggModel, population: &Population, [inputs, targets]: [Tensor<2, Int>; 2]) -> Fitness {
    population.evaluate(|members| {
        let state = model.initial_state(members.count() * SEQUENCES);
        let (logits, _) = model.forward(members.repeat(inputs.clone()), state);
        let targets = members.repeat(targets.clone()).flatten::<1>(0, 1);
        let rows = targets.dims()[0];
        let scores = log_likelihood(logits.flatten::<2>(0, 1), targets, rows, Rounding::Floor);
        scores.reshape([members.count(), SEQUENCES, STEPS])
    })
}

/// Every parameter's values by its path.
struct Values<'a> {
    found: BTreeMap<String, Vec<f64>>,
    path: Vec<&'a str>,
}

impl ModuleVisitor for Values<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(Box::leak(name.to_owned().into_boxed_str()));
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.found.insert(self.path.join("."), param.val().into_data().iter::<f64>().collect());
    }
}

fn values(model: &EggModel) -> BTreeMap<String, Vec<f64>> {
    let mut values = Values { found: BTreeMap::new(), path: Vec::new() };
    model.visit(&mut values);
    values.found
}

/// The gradient of the mean log-likelihood of the same weights and formulas in floats, without rounding, by path.
fn gradient(model: &EggModel, [inputs, targets]: [Tensor<2, Int>; 2]) -> BTreeMap<String, Vec<f64>> {
    let device = Device::flex().autodiff();
    let shapes: BTreeMap<&str, Vec<usize>> = [
        ("embedding.weight", vec![VOCAB, WIDTH]),
        ("blocks.0.mlp.expand.weight", vec![WIDTH, 4 * WIDTH]),
        ("blocks.0.mlp.contract.weight", vec![4 * WIDTH, WIDTH]),
        ("head.weight", vec![WIDTH, VOCAB]),
    ]
    .into();
    let weights: BTreeMap<String, Tensor<2>> = values(model)
        .into_iter()
        .map(|(path, values)| {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            let square = path.contains("_input") || path.contains("_hidden");
            let default = if square { vec![WIDTH, WIDTH] } else { vec![1, WIDTH] };
            let shape = shapes.get(path.as_str()).cloned().unwrap_or(default);
            let tensor = Tensor::<2>::from_data(TensorData::new(values, [shape[0], shape[1]]), &device);
            (path, tensor.require_grad())
        })
        .collect();
    let rows = SEQUENCES * STEPS;
    let at = |path: &str| weights[path].clone();
    let clip = |x: Tensor<2>| x.clamp(-127.0, 127.0);
    let linear = |x: Tensor<2>, path: &str| {
        let divisor = eggroll_core::integer::product_divisor(x.dims()[1]);
        clip(x.matmul(at(path)) / divisor)
    };
    let norm = |x: Tensor<2>, path: &str| x.clone() * at(path) / x.abs().mean_dim(1);
    let tokens = Tensor::<1, Int>::from_data(inputs.flatten::<1>(0, 1).into_data(), &device);
    let mut x = at("embedding.weight").select(0, tokens.clone()); // [rows, WIDTH]
    let z = norm(x.clone(), "blocks.0.gru_norm.weight");
    let gates = ["forget", "candidate"]
        .map(|gate| linear(z.clone(), &format!("blocks.0.gru.{gate}_input")).reshape([SEQUENCES, STEPS, WIDTH]));
    let gate = |number: usize, step: usize, x: Tensor<2>| {
        let name = ["forget", "candidate"][number];
        let input = gates[number].clone().slice_dim(1, step..step + 1).reshape([SEQUENCES, WIDTH]);
        let product = linear(x, &format!("blocks.0.gru.{name}_hidden"));
        clip(input + product + at(&format!("blocks.0.gru.{name}_bias")))
    };
    let starts = tokens.equal_elem(0).reshape([SEQUENCES, STEPS]);
    let mut state = Tensor::<2>::zeros([SEQUENCES, WIDTH], &device);
    let mut states = Vec::new();
    for step in 0..STEPS {
        let start = starts.clone().slice_dim(1, step..step + 1).expand([SEQUENCES, WIDTH]);
        state = state.mask_fill(start, 0.0);
        let forget = gate(0, step, state.clone()) + 127.0;
        let candidate = gate(1, step, forget.clone() * state.clone() / 256.0);
        state = state.clone() + forget * (candidate - state) / 256.0;
        states.push(state.clone());
    }
    x = clip(x + Tensor::stack::<3>(states, 1).reshape([rows, WIDTH]));
    let hidden = linear(norm(x.clone(), "blocks.0.mlp_norm.weight"), "blocks.0.mlp.expand.weight");
    x = clip(x + linear(hidden, "blocks.0.mlp.contract.weight"));
    let logits = linear(norm(x, "norm.weight"), "head.weight") * (LN_2 / 16.0);
    let targets = Tensor::<1, Int>::from_data(targets.flatten::<1>(0, 1).into_data(), &device);
    let score = log_softmax(logits, 1).gather(1, targets.reshape([rows, 1])).mean();
    let gradients = score.backward();
    let of = |(path, weight): (&String, &Tensor<2>)| {
        let gradient = weight.grad(&gradients).expect("every weight has one");
        (path.clone(), gradient.into_data().iter::<f64>().collect())
    };
    weights.iter().map(of).collect()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

/// By how much the first step moves every weight: a unit in the direction of its votes.
fn first_step(model: &EggModel, credit: Credit, seed: u64) -> BTreeMap<String, Vec<f64>> {
    let mut moved = model.clone();
    let mut strategy = config(credit, seed).with_learning_rate(1.01).try_init(model).expect("a strategy");
    let population = strategy.ask();
    let fitness = by_token(&moved, &population, batch(0));
    strategy.tell(&mut moved, population, fitness).expect("a step");
    let (before, after) = (values(model), values(&moved));
    let change = |(path, before): (&String, &Vec<f64>)| {
        (path.clone(), after[path].iter().zip(before).map(|(after, before)| after - before).collect())
    };
    before.iter().map(change).collect()
}

/// Votes by part have several times the cosine of votes of means with the gradient of the same weights in floats. What the recurrent weight of the
/// forget gate does to so small a model is below the rounding of its states: there is nothing to be seen.
#[test]
fn votes_by_part_point_along_the_gradient() {
    let mut cosines: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for seed in 0..3 {
        let model = model(seed);
        let truth = gradient(&model, batch(0));
        for (number, credit) in [Credit::Mean, Credit::Parts].into_iter().enumerate() {
            let step = first_step(&model, credit, seed);
            let is_matrix = |path: &str| !path.contains("norm") && !path.contains("bias");
            let all = |of: &BTreeMap<String, Vec<f64>>| {
                of.iter().filter(|(path, _)| is_matrix(path)).flat_map(|(_, values)| values.clone()).collect::<Vec<_>>()
            };
            cosines.entry("all matrices".to_owned()).or_default()[number] += cosine(&all(&step), &all(&truth)) / 3.0;
            for (path, step) in step.iter().filter(|(path, _)| is_matrix(path)) {
                cosines.entry(path.clone()).or_default()[number] += cosine(step, &truth[path]) / 3.0;
            }
        }
    }
    for (path, [mean, parts]) in &cosines {
        println!("{path:<34} mean {mean:7.3}   by part {parts:7.3}");
    }
    for (path, [mean, parts]) in cosines.iter().filter(|(path, _)| !path.ends_with("forget_hidden")) {
        assert!(*parts > 0.04 && *parts > 2.0 * mean, "{path}: by part {parts:.3}, of means {mean:.3}");
    }
    assert!(cosines["all matrices"][1] > 3.0 * cosines["all matrices"][0], "{:?}", cosines["all matrices"]);
}

/// The rows of the recurrent weights are those that give the states: each state follows from its rows by the formula, and is the next row.
#[test]
fn rows_of_a_recurrence() {
    let model = model(1);
    let population = config(Credit::Auto, 1).try_init(&model).expect("a strategy").ask();
    by_token(&model, &population, batch(0));
    let rows: BTreeMap<String, Vec<f64>> =
        population.layer_inputs().into_iter().map(|(path, x)| (path, x.into_data().iter::<f64>().collect())).collect();
    let (weights, name) = (values(&model), |name: &str| format!("blocks.0.gru.{name}"));
    let row = |of: &str, at: usize| rows[&name(of)][at * WIDTH..(at + 1) * WIDTH].to_vec();
    let clip = |value: f64| value.clamp(-127.0, 127.0);
    let divisor = f64::from(eggroll_core::integer::product_divisor(WIDTH));
    let linear = |x: &[f64], of: &str, o: usize| {
        let weight = &weights[&name(of)];
        clip(((0..WIDTH).map(|i| x[i] * weight[i * WIDTH + o]).sum::<f64>() / divisor).floor())
    };
    let starts: Vec<i64> = batch(0)[0].clone().into_data().iter::<i64>().collect();
    for at in 0..SEQUENCES * STEPS - 1 {
        let (z, before, gated, next) = (
            row("forget_input", at),
            row("forget_hidden", at),
            row("candidate_hidden", at),
            row("forget_hidden", at + 1),
        );
        for o in 0..WIDTH {
            let gate = |name: &str, x: &[f64]| {
                let bias = weights[&format!("blocks.0.gru.{name}_bias")][o];
                clip(linear(&z, &format!("{name}_input"), o) + linear(x, &format!("{name}_hidden"), o) + bias)
            };
            let forget = gate("forget", &before) + 127.0;
            assert!(gated[o] == (forget * before[o] / 256.0).floor(), "gated, row {at}, column {o}");
            let state = before[o] + (forget * (gate("candidate", &gated) - before[o]) / 256.0).floor();
            let begins = (at + 1).is_multiple_of(STEPS) || starts[at + 1] == 0;
            assert!(next[o] == if begins { 0.0 } else { state }, "state, row {at}, column {o}");
        }
    }
}

/// What is learned does not depend on chunks, and is more than from means.
#[test]
fn learns_more_than_from_means() {
    let train = |mut model: EggModel, credit: Credit, chunk: usize, seed: u64| {
        let mut strategy = config(credit, seed).with_chunk_size(chunk).try_init(&model).expect("a strategy");
        let mut last = Vec::new();
        for generation in 0..30 {
            let population = strategy.ask();
            let fitness = by_token(&model, &population, batch(generation));
            let report = strategy.tell(&mut model, population, fitness).expect("a step");
            last.push(report.fitness_mean);
        }
        (values(&model), last[25..].iter().sum::<f64>() / 5.0)
    };
    for seed in 0..3 {
        // One model: other tests draw from the device's generator at the same time.
        let begin = model(seed);
        let (weights, score) = train(begin.clone(), Credit::Auto, 64, seed);
        assert!(train(begin.clone(), Credit::Auto, 6, seed).0 == weights, "chunks of 6, seed {seed}");
        let (_, of_means) = train(begin, Credit::Mean, 64, seed);
        println!("seed {seed}: by part {score:.2}, from means {of_means:.2} sixteenths of a bit");
        assert!(score > of_means + 2.0, "seed {seed}: by part {score:.2}, from means {of_means:.2}");
    }
}

/// What every parameter learns from.
#[test]
fn credits() {
    let model = model(0);
    let strategy = config(Credit::Auto, 0).try_init(&model).expect("a strategy");
    let population = strategy.ask();
    let fitness = by_token(&model, &population, batch(0));
    let credits = population.credits(&fitness);
    let found = |credit: &ParameterCredit| {
        let of = credits.parameters.iter().filter(|(_, found)| found == credit);
        of.map(|(path, _)| path.as_str()).collect::<Vec<_>>()
    };
    let own = ["embedding.weight", "blocks.0.mlp.expand.weight", "blocks.0.mlp.contract.weight", "head.weight"];
    assert_eq!(found(&ParameterCredit::Parts { acts_later: false }), own);
    let recurrent = ["forget_input", "forget_hidden", "candidate_input", "candidate_hidden"];
    let recurrent: Vec<String> = recurrent.iter().map(|name| format!("blocks.0.gru.{name}")).collect();
    assert_eq!(found(&ParameterCredit::Parts { acts_later: true }), recurrent);
}

/// A threshold counts the votes of all parts together, and says so.
#[test]
fn thresholds_cannot() {
    let model = LinearConfig::new(8, 4).init(&Device::flex());
    let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(8);
    for (credit, refused) in [(Credit::Auto, false), (Credit::Parts, true)] {
        let mut strategy = strategy.clone().with_credit(credit).try_init(&model).expect("a strategy");
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let rows = Tensor::<2, Int>::from_ints([[9; 8], [-30; 8]], &Device::flex());
            let logits = model.forward(members.repeat(rows.cast(burn::tensor::DType::I8)));
            let targets = Tensor::<1, Int>::zeros([2 * members.count()], &Device::flex());
            log_likelihood(logits, targets, 2 * members.count(), Rounding::Floor).reshape([members.count(), 2])
        });
        let told = strategy.tell(&mut model.clone(), population, fitness);
        match told {
            Ok(_) => assert!(!refused, "{credit}"),
            Err(error) => assert!(refused && error.to_string().contains("where a threshold moves them"), "{error}"),
        }
    }
}

/// Members without a score for one part have no vote for it, and votes for the others.
#[test]
fn a_part_without_a_score() {
    let scores = vec![4.0, 0.0, f32::NAN, 1.0, 2.0, 4.0, 8.0, 0.0];
    let fitness = Fitness::from(scores).with_tasks(2); // two parts of four members
    assert_eq!(fitness.part_votes(4, false), [1, 0, -1, 2]);
}

/// Whatever the levels of votes: the log has all scores, and says that they are not enough.
#[test]
fn their_logs_are_not_replayed_by_fitness_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let (first, config) = (model(0), config(Credit::Auto, 0));
    let (mut strategy, mut model) = (config.init(&first), first.clone());
    let mut log = ReplayLog::create(&path, &strategy, &model).expect("a log");
    for generation in 0..2 {
        let population = strategy.ask();
        let fitness = by_token(&model, &population, batch(generation));
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        log.append(&strategy, &fitness).expect("appends");
    }
    let error = replay(&path, first.clone(), None).map(drop).expect_err("refused");
    assert!(matches!(error, Error::Saved(SavedError::ReplayCredit { parts: 72, .. })), "{error}");
    let evaluate = |model: &EggModel, population: &Population| {
        Ok(by_token(model, population, batch(population.generation() as u32)))
    };
    let (_, again) = replay_evaluated(&path, config.init(&first), first, None, evaluate).expect("replays");
    assert_eq!(parameter_digest(&again), parameter_digest(&model));
}
