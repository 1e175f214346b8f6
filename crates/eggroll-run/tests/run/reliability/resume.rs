//! A run that is killed anywhere and continues from its checkpoint is the run that was not: every noiser, every optimizer, bit for bit.

use crate::reliability::custom_noiser::wide_only;
use crate::reliability::master_weights::Half;
use crate::reliability::support::*;
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::{EggrollConfig, NoiserConfig, ParameterKind};
use eggroll_run::*;
use eggroll_train::*;
use proptest::prelude::*;
use std::path::Path;

const GENERATIONS: usize = 12;
const EVERY: u64 = 3;

/// Trains to the end; killed before each generation of `kills`, it has nothing but its checkpoints and its log.
fn killed<T: LearningModel>(config: &EvolutionStrategyConfig, kills: &[u64], folder: &Path) -> String {
    let (checkpoints, path) = (Checkpoints::new(folder.join("checkpoints")).with_limits_of(config), folder.join("log"));
    let mut kills = kills.to_vec();
    loop {
        let (mut strategy, mut model) = match checkpoints.load_latest(T::start()).expect("loads") {
            Some(saved) => saved,
            None => {
                let model = T::start();
                (config.init(&model), model)
            }
        };
        let mut log = match path.exists() {
            true => ReplayLog::resume(&path, &strategy).expect("resumes"),
            false => ReplayLog::create(&path, &strategy, &model).expect("a log"),
        };
        loop {
            let done = strategy.generation();
            if let Some(kill) = kills.iter().position(|kill| *kill == done) {
                kills.swap_remove(kill);
                break;
            }
            if done == GENERATIONS as u64 {
                return parameter_digest(&model);
            }
            model = generation(&mut strategy, model, &mut log);
            if strategy.generation().is_multiple_of(EVERY) {
                checkpoints.save(&strategy, &model).expect("saves");
            }
        }
    }
}

fn resumes<T: LearningModel>(config: EvolutionStrategyConfig) {
    let inputs = (any::<u64>(), proptest::collection::vec(0..=GENERATIONS as u64, 0..4), 0..=GENERATIONS);
    check(1, &inputs, |(seed, kills, until)| {
        let config = config.clone().with_seed(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let straight = digests::<T>(&config, GENERATIONS, &folder.path().join("straight"));
        prop_assert_eq!(&killed::<T>(&config, &kills, folder.path()), straight.last().expect("the first"));
        // The log of the killed run has every generation once, and any of them can be made again.
        let log = folder.path().join("log");
        prop_assert_eq!(replay_range(&log).expect("a log"), 0..GENERATIONS as u64);
        let first = T::start();
        let (strategy, model) = replay_from(&log, config.init(&first), first, Some(until as u64)).expect("replays");
        prop_assert_eq!(strategy.generation(), until as u64);
        prop_assert_eq!(&parameter_digest(&model), &straight[until]);
        // Canary: generations differ, so that the comparisons can fail.
        let moved = (1..straight.len()).filter(|i| straight[*i] != straight[*i - 1]).count();
        let moves = config.noiser != NoiserConfig::NoOp;
        prop_assert_eq!(moved > GENERATIONS / 2, moves, "{} generations moved something: {:?}", moved, config);
        Ok(())
    });
}

/// One case for each pair: there are many.
#[test]
fn every_noiser_and_optimizer_resumes_bit_for_bit() {
    for noiser in noisers(ParameterKind::Float) {
        for optimizer in optimizers(ParameterKind::Float) {
            resumes::<Net>(config(noiser.clone(), optimizer));
        }
    }
}

#[test]
fn integers_resume_bit_for_bit() {
    for noiser in noisers(ParameterKind::Integer) {
        for optimizer in optimizers(ParameterKind::Integer) {
            resumes::<IntegerNet>(config(noiser.clone(), optimizer).with_learning_rate(0.5));
        }
    }
}

/// A transform that remembers.
struct Velocity;

impl GradientTransform for Velocity {
    fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
        values.iter().map(Tensor::zeros_like).collect()
    }

    fn update(&self, velocities: &mut [Tensor<1>], parameters: &mut [ParameterGradient]) {
        for (velocity, parameter) in velocities.iter_mut().zip(parameters) {
            *velocity = velocity.clone() * 0.9 + parameter.gradient.clone();
            parameter.gradient = velocity.clone();
        }
    }
}

/// What else a run saves: spreads and an anchor of its first model, f32 master weights, scores that are ranked again; what a transform remembers; and functions of
/// the program, which it is given again.
#[test]
fn settings_resume_bit_for_bit() {
    let plain = || config(EggrollConfig::new(), AdamConfig::new());
    let relative = plain().with_noise_scale(NoiseScale::RelativeToSpread).with_scales([("second.*", 0.5)]);
    resumes::<Net>(relative.with_anchor_decay(0.5));
    resumes::<Net>(plain().with_shaping(FitnessShaping::Utilities));
    resumes::<Net>(plain().with_shaping(FitnessShaping::TopPairs { pairs: 3 }));
    resumes::<Net>(config(wide_only(6), AdamConfig::new()));
    let ranks = CustomShaping::new("ranks", |scores| FitnessShaping::CenteredRank.shape(scores));
    let sigma = CustomSigma::new("falling", |generation| 0.1 / (1.0 + generation as f64));
    resumes::<Net>(plain().with_shaping(ranks).with_sigma(sigma).with_transform("velocity", Velocity));
    resumes::<Half>(plain().with_learning_rate(5e-3).with_master_weights(true));
}
