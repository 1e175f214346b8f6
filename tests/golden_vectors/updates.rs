//! From fitness to new parameters: `jax_updates.npz`.
//!
//! The model has a weight and a bias that are trained, an embedding and another matrix that the reference excludes, and
//! a weight stacked over two layers, here two weights.

use crate::compare::{ROUNDING, assert_close, assert_differs, values};
use crate::devices;
use crate::loader::{Array, Golden, sparse_entries};
use crate::recorded::{Draw, gradients, pair_weights, parameters, perturbation};
use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::scope::Perturbation;
use eggroll::core::{BaselineSubtractionConfig, EggrollConfig, NoiserConfig, OpenEsConfig, ParameterEntry, Role};
use eggroll::train::{EvolutionStrategyConfig, FitnessShaping, GradientScale, OptimizerConfig, clip_norm};
use std::collections::BTreeMap;

const D_INPUT: usize = 10;

#[derive(Module, Debug)]
struct Model {
    w: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    e: Param<Tensor<2>>,
    x: Param<Tensor<2>>,
    s: Vec<Param<Tensor<2>>>,
}

/// The file's name of a parameter, and its layer if it is one of a stack.
fn name(path: &str) -> (String, Option<usize>) {
    match path.split_once('.') {
        Some((stack, layer)) => (stack.to_uppercase(), Some(layer.parse().expect("a layer"))),
        None if path == "bias" => (path.into(), None),
        None => (path.to_uppercase(), None),
    }
}

/// The values of a parameter in an array of the file, in Burn's layout.
#[track_caller]
pub fn parameter(golden: &Golden, prefix: &str, path: &str) -> Array {
    let (name, layer) = name(path);
    let array = golden.array(&format!("{prefix}_{name}"));
    let array = layer.map_or_else(|| array.clone(), |layer| array.at(layer));
    if array.shape.len() == 2 { array.flipped() } else { array }
}

impl Model {
    fn new(golden: &Golden, device: &Device) -> Self {
        let matrix = |path| Param::from_tensor(parameter(golden, "p", path).tensor(device));
        Self {
            w: matrix("w"),
            bias: Param::from_tensor(parameter(golden, "p", "bias").tensor(device)),
            e: matrix("e"),
            x: matrix("x"),
            s: vec![matrix("s.0"), matrix("s.1")],
        }
    }
}

/// One tag of the file.
pub struct TrainingCase {
    /// Prefix of its arrays.
    pub tag: &'static str,
    /// The noise.
    pub noiser: NoiserConfig,
    /// The optimizer.
    pub optimizer: OptimizerConfig,
    /// Generations that are trained from that of the file on, all with the same fitness.
    pub steps: u64,
    /// Generations that share noise.
    pub noise_reuse: u64,
    /// The longest gradient that reaches the optimizer.
    pub clip_norm: Option<f64>,
}

/// The result of training.
pub struct TrainingResult {
    /// The gradient of the first step, by path.
    pub gradients: BTreeMap<String, Vec<f64>>,
    /// The parameters after the last step, by path.
    pub parameters: BTreeMap<String, Vec<f64>>,
    /// The roles, by path.
    pub roles: BTreeMap<String, Role>,
}

impl TrainingCase {
    fn one_step(tag: &'static str, noiser: impl Into<NoiserConfig>) -> Self {
        let optimizer = SgdConfig::new().into();
        Self { tag, noiser: noiser.into(), optimizer, steps: 1, noise_reuse: 1, clip_norm: None }
    }

    /// Paths that the reference does not train; for OpenES the file has no noise of the stack either.
    fn frozen(&self) -> &'static [&'static str] {
        match self.noiser {
            NoiserConfig::OpenEs(_) => &["e", "x", "s"],
            _ => &["e", "x"],
        }
    }

    fn perturbation(&self, golden: &Golden, model: &Model, generation: u64, device: &Device) -> Perturbation {
        let config = EvolutionStrategyConfig::new(self.noiser.clone(), self.optimizer.clone())
            .with_noise_reuse(self.noise_reuse);
        let noise_generation = config.noise_generation(generation).expect("small");
        let record = |entry: &ParameterEntry, t: u32| {
            let (name, layer) = name(&entry.path);
            let prefix = if t == 0 { "noise0" } else { "noise" };
            let noise = match (entry.role, &*name) {
                (Role::LowRank { rank }, _) => golden.array(&format!("{prefix}_{name}_r{rank}")),
                (_, "bias") => golden.array(&format!("{prefix}_{name}")),
                _ => golden.array(&format!("{prefix}_full_{name}")),
            };
            let noise = layer.map_or_else(|| noise.clone(), |layer| noise.at(layer));
            match entry.role {
                Role::LowRank { .. } => Draw::LowRank(noise.factors(D_INPUT, device)),
                _ => Draw::Dense(noise.dense(device)),
            }
        };
        let noise = (noise_generation, golden.scalar("sigma"));
        perturbation(model, &self.noiser, self.frozen(), noise, record)
    }

    /// Trains the model of the file.
    pub fn train(&self, golden: &Golden, fitness: &[f64], scale: GradientScale, device: &Device) -> TrainingResult {
        let (mut model, mut optimizer) = (Model::new(golden, device), self.optimizer.init());
        let weights = pair_weights(fitness, FitnessShaping::Raw, scale, golden.scalar("sigma"));
        let mut first = None;
        let start = golden.scalar("epoch") as u64;
        for generation in start..start + self.steps {
            let perturbation = self.perturbation(golden, &model, generation, device);
            let (estimate, by_path) = gradients(&model, &perturbation, &weights, device);
            first.get_or_insert((by_path, perturbation.table));
            let estimate = match self.clip_norm {
                None => estimate,
                Some(longest) => clip_norm(&model, estimate, longest),
            };
            model = optimizer.step(golden.scalar("lr"), model, estimate);
        }
        let (gradients, table) = first.expect("at least one step");
        let roles = table.entries().iter().map(|entry| (entry.path.clone(), entry.role)).collect();
        TrainingResult { gradients, parameters: parameters(&model, &table), roles }
    }

    /// Compares gradients, where the file has them, and new parameters; parameters that are frozen must not have moved by a
    /// bit. With canaries: every trained parameter must notice fitness of the wrong members and another scale.
    pub fn check(&self, golden: &Golden, device: &Device) {
        let fitness = golden.values("fitness");
        let right = self.train(golden, fitness, GradientScale::SqrtPopulation, device);
        let opposite: Vec<f64> = fitness.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
        let mut rotated = fitness.to_vec();
        rotated.rotate_left(2);
        let mut wrong: Vec<(&str, TrainingResult)> = Vec::new();
        for (what, fitness) in [("wrong sign", &opposite), ("another pair", &rotated)] {
            wrong.push((what, self.train(golden, fitness, GradientScale::SqrtPopulation, device)));
        }
        wrong.push(("another scale", self.train(golden, fitness, GradientScale::ScoreFunction, device)));
        let plain_sgd = matches!(self.optimizer, OptimizerConfig::Sgd(_)) && self.clip_norm.is_none();

        for (path, role) in &right.roles {
            let what = format!("{}, {path}", self.tag);
            if *role == Role::Frozen {
                assert!(!right.gradients.contains_key(path), "{what}: a gradient");
                assert_eq!(right.parameters[path], parameter(golden, "p", path).values, "{what}: moved");
                continue;
            }
            let new = parameter(golden, &format!("{}_new", self.tag), path).values;
            assert_close(&format!("{what}: parameter"), &right.parameters[path], &new, ROUNDING);
            let has_gradient = golden.get(&format!("{}_grad_{}", self.tag, name(path).0)).is_some();
            assert_eq!(has_gradient, self.steps == 1, "{what}: gradients are in the file for single steps");
            for (how, wrong) in &wrong {
                // Adam's step does not depend on the gradient's scale, and neither does that of a gradient that is clipped.
                if plain_sgd || *how != "another scale" {
                    assert_differs(&format!("{what}: parameter, {how}"), &wrong.parameters[path], &new, ROUNDING);
                }
            }
            if has_gradient {
                let gradient = parameter(golden, &format!("{}_grad", self.tag), path).values;
                assert_close(&format!("{what}: gradient"), &right.gradients[path], &gradient, ROUNDING);
                for (how, wrong) in &wrong {
                    assert_differs(&format!("{what}: gradient, {how}"), &wrong.gradients[path], &gradient, ROUNDING);
                }
            }
        }
        let trained = right.roles.values().filter(|role| **role != Role::Frozen).count();
        assert_eq!(trained, right.gradients.len(), "{}: gradients", self.tag);
    }
}

#[test]
fn eggroll_estimates() {
    let golden = Golden::open("jax_updates.npz");
    let eggroll = |rank| EggrollConfig::new().with_rank(rank);
    for device in devices() {
        for case in [
            TrainingCase::one_step("eggroll_r1_sgd", eggroll(1)),
            TrainingCase::one_step("eggroll_r4_sgd", eggroll(4)),
            TrainingCase::one_step("eggroll_r4_batched_sgd", eggroll(4)),
            TrainingCase::one_step("eggroll_r4_frozen_sgd", eggroll(4).with_freeze_non_matrix(true)),
        ] {
            case.check(&golden, &device);
        }
    }
}

/// The stack is left out: the file has no dense noise for it.
#[test]
fn open_es_estimates() {
    let golden = Golden::open("jax_updates.npz");
    for device in devices() {
        TrainingCase::one_step("openes_sgd", OpenEsConfig::new()).check(&golden, &device);
    }
}

#[test]
fn sign_eggroll_estimates() {
    let golden = Golden::open("jax_updates.npz");
    let noiser = || NoiserConfig::SignEggroll(EggrollConfig::new().with_rank(4));
    for device in devices() {
        TrainingCase::one_step("alteggroll_r4_sgd", noiser()).check(&golden, &device);
        let case = TrainingCase::one_step("", NoiserConfig::from(EggrollConfig::new().with_rank(4)));
        let found = case.train(&golden, golden.values("fitness"), GradientScale::SqrtPopulation, &device);
        let expected = parameter(&golden, "alteggroll_r4_sgd_grad", "w").values;
        assert_differs("values in place of signs", &found.gradients["w"], &expected, ROUNDING);
    }
}

/// Two of four members are baselines; the gradient is clipped to a norm of 0.05 for the step.
#[test]
fn baseline_estimates() {
    let golden = Golden::open("jax_updates.npz");
    let of_groups = |group| BaselineSubtractionConfig::new(group).with_eggroll(EggrollConfig::new().with_rank(4));
    let case =
        |group| TrainingCase { clip_norm: Some(0.05), ..TrainingCase::one_step("bs_r4_g4_sgd", of_groups(group)) };
    for device in devices() {
        case(4).check(&golden, &device);
        let train =
            |case: TrainingCase| case.train(&golden, golden.values("fitness"), GradientScale::SqrtPopulation, &device);
        let gradient = parameter(&golden, "bs_r4_g4_sgd_grad", "w").values;
        assert_differs("other groups", &train(case(6)).gradients["w"], &gradient, ROUNDING);
        let new = parameter(&golden, "bs_r4_g4_sgd_new", "w").values;
        let longer = TrainingCase { clip_norm: Some(0.06), ..case(4) };
        assert_differs("clipped to another norm", &train(longer).parameters["w"], &new, ROUNDING);
    }
}

/// Entries are given with sign and σ in their values, member by member; both members of a pair share their places.
#[test]
fn sparse_estimate() {
    let golden = Golden::open("jax_updates.npz");
    let fitness = golden.values("fitness");
    for device in devices() {
        let expected = parameter(&golden, "sparse_grad", "w").values;
        let pairs: Vec<usize> = (0..fitness.len()).step_by(2).collect();
        let gradient = |fitness: &[f64], scale| {
            let weights = pair_weights(fitness, FitnessShaping::Raw, scale, golden.scalar("sigma"));
            let share = Role::Sparse.noise_elements(&[D_INPUT, 6]) as f64 / (D_INPUT * 6) as f64;
            let weights: Vec<f32> = weights.iter().map(|weight| (weight * share) as f32).collect();
            let weights = Tensor::from_data(TensorData::new(weights.clone(), [weights.len()]), &device);
            values(sparse_entries(&golden, &pairs, &device).estimate(weights, 1.0, [D_INPUT, 6]))
        };
        assert_close("sparse gradient", &gradient(fitness, GradientScale::SqrtPopulation), &expected, ROUNDING);
        assert_differs("another scale", &gradient(fitness, GradientScale::ScoreFunction), &expected, ROUNDING);
        let mut rotated = fitness.to_vec();
        rotated.rotate_left(2);
        assert_differs("another pair", &gradient(&rotated, GradientScale::SqrtPopulation), &expected, ROUNDING);
    }
}

/// Also the reference leaves what is frozen where it is, as long as nothing decays.
#[test]
fn frozen_parameters_agree_without_weight_decay() {
    let golden = Golden::open("jax_updates.npz");
    for (tag, paths) in [
        ("eggroll_r4_sgd", &["e", "x"][..]),
        ("eggroll_r4_frozen_sgd", &["bias", "e", "x"]),
        ("openes_sgd", &["e", "x"]),
        ("eggroll_r4_adam3", &["e", "x"]),
    ] {
        for path in paths {
            let (old, new) = (parameter(&golden, "p", path), parameter(&golden, &format!("{tag}_new"), path));
            assert_eq!(old.values, new.values, "{tag}, {path}");
        }
    }
    let (old, new) = (parameter(&golden, "p", "bias"), parameter(&golden, "eggroll_r4_sgd_new", "bias"));
    assert_differs("a bias that is trained", &old.values, &new.values, ROUNDING);
}
