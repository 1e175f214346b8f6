//! A PyTorch port of EGGROLL: `torch_port.npz`.
//!
//! There the first half of the members has sign +1 and the second half the same noise with sign −1; here signs alternate.
//! The file's gradient ascends, ours descends.

use crate::compare::{ROUNDING, SCHEDULE, assert_close, assert_differs, values};
use crate::devices;
use crate::loader::{Array, Golden};
use crate::recorded::{Draw, gradients, pair_weights, parameters, perturbation};
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::module::Param;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll::core::scope::Perturbation;
use eggroll::core::{EggrollConfig, NoiserConfig, PairRange, ParameterEntry};
use eggroll::nn::{Linear, LinearConfig};
use eggroll::train::{EvolutionStrategyConfig, FitnessShaping, GradientScale, OptimizerConfig, SigmaSchedule};

const MEMBERS: usize = 12;
const PAIRS: usize = MEMBERS / 2;
const RANKS: [usize; 2] = [1, 4];
const SIGMA: f64 = 0.3;
const LEARNING_RATE: f64 = 0.1;

/// The file's members in our order: `0, 6, 1, 7, …`.
fn members() -> Vec<usize> {
    (0..PAIRS).flat_map(|pair| [pair, pair + PAIRS]).collect()
}

/// The file's members in an order that does not keep pairs together: a canary.
fn members_as_in_file() -> Vec<usize> {
    (0..MEMBERS).collect()
}

/// The part of the file for one rank.
struct Port {
    golden: Golden,
    rank: usize,
}

impl Port {
    fn open(rank: usize) -> Self {
        Self { golden: Golden::open("torch_port.npz"), rank }
    }

    fn array(&self, name: &str) -> &Array {
        self.golden.array(&format!("r{}_{name}", self.rank))
    }

    fn layer(&self, device: &Device) -> Linear {
        let weight = Param::from_tensor(self.array("W").flipped().tensor(device));
        Linear { weight, bias: Some(Param::from_tensor(self.array("b").tensor(device))) }
    }

    /// The layer's weight under the noise of the first half of the members; its bias is not perturbed.
    fn perturbation(&self, layer: &Linear, device: &Device) -> Perturbation {
        let noiser = NoiserConfig::from(EggrollConfig::new().with_rank(self.rank).with_freeze_non_matrix(true));
        let factor = |name| self.array(name).select(&(0..PAIRS).collect::<Vec<_>>()).flipped().tensor(device);
        let record = |_: &ParameterEntry, _| {
            let (b, a) = (factor("B"), factor("A")); // [pairs, rank, _]
            Draw::LowRank(eggroll::core::ops::explicit::Factors { b, a })
        };
        perturbation(layer, &noiser, &[], (0, SIGMA), record)
    }
}

/// What lets one draw stand for two members.
#[test]
fn second_half_is_the_antithesis_of_the_first() {
    for rank in RANKS {
        let port = Port::open(rank);
        let half = |name, first: usize| port.array(name).select(&(first..first + PAIRS).collect::<Vec<_>>()).values;
        let opposite: Vec<f64> = half("A", PAIRS).iter().map(|value| -value).collect();
        assert_eq!(half("A", 0), opposite);
        assert_eq!(half("B", 0), half("B", PAIRS));
        assert_ne!(half("A", 0), half("A", PAIRS));
    }
}

#[test]
fn outputs() {
    for rank in RANKS {
        for device in devices() {
            let port = Port::open(rank);
            let layer = port.layer(&device);
            let perturbation = port.perturbation(&layer, &device);
            let forward = |order: &[usize]| {
                let x = port.array("x").select(order).tensor::<3>(&device); // [members, rows, d_input]
                let (y, _) = perturbation.run(PairRange::new(0, PAIRS as u32), || layer.forward(x));
                values::<3>(y)
            };
            let expected = |order: &[usize]| port.array("y").select(order).values;
            let what = format!("outputs of rank {rank}");
            assert_close(&what, &forward(&members()), &expected(&members()), ROUNDING);
            let wrong = members_as_in_file();
            assert_differs(&what, &forward(&wrong), &expected(&wrong), ROUNDING);
        }
    }
}

#[test]
fn fitness_has_sample_deviation() {
    for rank in RANKS {
        let port = Port::open(rank);
        let (scores, expected) = (&port.array("f").values, &port.array("fn").values);
        assert_close("sample z-score", &FitnessShaping::SampleZScore.shape(scores), expected, ROUNDING);
        assert_differs("population z-score", &FitnessShaping::ZScore.shape(scores), expected, ROUNDING);
    }
}

#[test]
fn estimate_and_step() {
    for rank in RANKS {
        for device in devices() {
            let port = Port::open(rank);
            let layer = port.layer(&device);
            let perturbation = port.perturbation(&layer, &device);
            let train = |order: &[usize], shaping| {
                let scores = port.array("f").select(order).values;
                let weights = pair_weights(&scores, shaping, GradientScale::SqrtPopulation, SIGMA);
                let (estimate, by_path) = gradients(&layer, &perturbation, &weights, &device);
                let mut optimizer = OptimizerConfig::from(SgdConfig::new()).init();
                let model = optimizer.step(LEARNING_RATE, layer.clone(), estimate);
                let ascent: Vec<f64> = by_path["weight"].iter().map(|value| -value).collect();
                (ascent, parameters(&model, &perturbation.table))
            };
            let (gradient, new) = (port.array("grad").flipped().values, port.array("Wnew").flipped().values);
            let (found, model) = train(&members(), FitnessShaping::SampleZScore);
            assert_close(&format!("gradient of rank {rank}"), &found, &gradient, ROUNDING);
            assert_close(&format!("weight of rank {rank}"), &model["weight"], &new, ROUNDING);
            assert_eq!(model["bias"], port.array("b").values);

            for (what, order, shaping) in [
                ("members in another order", members_as_in_file(), FitnessShaping::SampleZScore),
                ("members reversed", members().into_iter().rev().collect(), FitnessShaping::SampleZScore),
                ("population z-score", members(), FitnessShaping::ZScore),
            ] {
                let (found, model) = train(&order, shaping);
                assert_differs(&format!("gradient, {what}"), &found, &gradient, ROUNDING);
                assert_differs(&format!("weight, {what}"), &model["weight"], &new, ROUNDING);
            }
        }
    }
}

/// A strategy's second generation has the file's learning rate and σ.
#[test]
fn schedules_decay() {
    for rank in RANKS {
        let port = Port::open(rank);
        let expected = &port.array("lr_sigma").values;
        for device in devices() {
            let mut model = LinearConfig::new(3, 2).init(&device);
            let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(rank), SgdConfig::new())
                .with_population_size(MEMBERS)
                .with_sigma(SigmaSchedule::Exponential { initial: SIGMA, decay: 0.999, last: None })
                .with_learning_rate(ExponentialLrSchedulerConfig::new(LEARNING_RATE, 0.9995))
                .init(&model);
            let mut found = Vec::new();
            for _ in 0..2 {
                let population = strategy.ask();
                let x = Tensor::<2>::ones([4, 3], &device);
                let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
                strategy.tell(&mut model, population, fitness).expect("a generation");
                let report = strategy.report().expect("a report");
                found.push([report.learning_rate, report.sigma]);
            }
            assert_close("second generation", &found[1], expected, SCHEDULE);
            assert_differs("first generation", &found[0], expected, SCHEDULE);
        }
    }
}
