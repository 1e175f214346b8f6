//! A run of an int8 model with integer AdamW and the state of its members: checkpoint, replay log. All bits are the same everywhere.

use super::{copy, golden, refuses_a_changed_byte, write_if_asked};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::core::NoiseKey;
use eggroll::core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll::core::rng::integer::fill_integers;
use eggroll::nn::integer::{EggModel, EggModelConfig, EggState, SavedState};
use eggroll::prelude::*;
use eggroll::run::{ReplayLog, portable_digest, replay};
use std::fs;
use std::path::Path;

const MEMBERS: usize = 8;
const STEPS: usize = 6;
/// Digests of the models of generations 3 and 6.
const DIGESTS: [&str; 2] = [
    "84eb92163bd5e11f26ba65f2390d308f62423d243c45910fd496206eb7c7dd26",
    "43953fbe4a92c3f8698253bd1ca130681f727ee7c51de15b14be7053018304d3",
];

/// A model whose matrices are drawn.
fn first() -> EggModel {
    struct Drawn(u32);

    impl ModuleMapper for Drawn {
        fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
            if D == 1 {
                return param;
            }
            self.0 += 1;
            let mut values = vec![0; param.dims().iter().product()];
            fill_integers(NoiseKey::new(99, self.0, 0), 0, &mut values);
            let (shape, device) = (param.dims(), Device::flex());
            param.map(|_| Tensor::from_data(TensorData::new(values, shape), (&device, integer_type(&device))))
        }
    }
    EggModelConfig::new().with_layers(1).with_width(16).init(&Device::flex()).map(&mut Drawn(0))
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(QEggrollConfig::new(), IntegerAdamWConfig::new())
        .with_population_size(MEMBERS)
        .with_learning_rate(0.5)
        .with_seed(3)
}

/// Text of a generation: `[1, STEPS + 1]`.
fn tokens(generation: u64) -> Tensor<2, Int> {
    let all: Vec<i32> = (0..=STEPS as u64).map(|step| ((generation * 31 + step * 7) % 64 + 32) as i32).collect();
    Tensor::from_data(TensorData::new(all, [1, STEPS + 1]), &Device::flex())
}

/// Trains up to a generation; `told` sees every fitness.
fn train(
    strategy: &mut EvolutionStrategy,
    (mut model, mut state): (EggModel, EggState),
    until: u64,
    mut told: impl FnMut(&EvolutionStrategy, &Fitness),
) -> (EggModel, EggState) {
    while strategy.generation() < until {
        let (population, tokens) = (strategy.ask(), tokens(strategy.generation()));
        let fitness;
        (fitness, state) = population.evaluate_with_state(state, |members, state| {
            let (rows, count) = (members.repeat(tokens.clone()), members.count());
            let (logits, state) = model.forward(rows.clone().narrow(1, 0, STEPS), state);
            let targets = rows.narrow(1, 1, STEPS).reshape([count * STEPS]);
            (log_likelihood(logits.reshape([count * STEPS, 256]), targets, count, Rounding::Floor), state)
        });
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        told(strategy, &fitness);
    }
    (model, state)
}

fn start() -> (EvolutionStrategy, (EggModel, EggState)) {
    let model = first();
    let state = model.initial_state(MEMBERS);
    (config().try_init(&model).expect("a strategy"), (model, state))
}

fn load(folder: &Path) -> Result<(EvolutionStrategy, EggModel, SavedState), eggroll::run::Error> {
    let checkpoints = Checkpoints::new(folder.join("checkpoints")).with_fallback(false);
    let saved = checkpoints.load_latest_with_state(first(), SavedState::from(first().initial_state(MEMBERS)))?;
    Ok(saved.expect("is there"))
}

#[test]
fn written() {
    write_if_asked("integer", |folder| {
        let (mut strategy, start) = start();
        let mut log = ReplayLog::create(folder.join("run.replay"), &strategy, &start.0).expect("a log");
        let mut told = |strategy: &EvolutionStrategy, fitness: &Fitness| log.append(strategy, fitness).expect("writes");
        let (model, state) = train(&mut strategy, start, 3, &mut told);
        let checkpoints = Checkpoints::new(folder.join("checkpoints"));
        checkpoints.save_with_state(&strategy, &model, &SavedState::from(state.clone())).expect("saves");
        train(&mut strategy, (model, state), 6, &mut told);
        log.sync().expect("writes");
        for lock in [folder.join("checkpoints/.lock"), folder.join("run.replay.lock")] {
            drop(fs::remove_file(lock));
        }
    });
}

#[test]
fn the_checkpoint_is_read_and_continued() {
    let folder = copy("integer");
    let (mut strategy, model, state) = load(folder.path()).expect("loads");
    assert_eq!((strategy.generation(), portable_digest(&model).as_str()), (3, DIGESTS[0]));
    let scores = |fitness: &Fitness| (0..MEMBERS).map(|member| fitness.score(member)).collect::<Vec<_>>();
    let mut found = Vec::new();
    let (model, _) = train(&mut strategy, (model, state.into()), 6, |_, fitness| found.push(scores(fitness)));
    assert_eq!(portable_digest(&model), DIGESTS[1]);

    let (mut strategy, model, _) = load(folder.path()).expect("loads");
    let state = model.initial_state(MEMBERS);
    let mut others = Vec::new();
    train(&mut strategy, (model, state), 6, |_, fitness| others.push(scores(fitness)));
    assert_ne!(found, others, "canary: without the members' state");

    let saved = Checkpoints::new(folder.path().join("checkpoints")).list().expect("lists").pop().expect("one");
    for entry in fs::read_dir(saved).expect("a checkpoint") {
        let path = entry.expect("an entry").path();
        refuses_a_changed_byte(&path, || load(folder.path()).err().map(|error| error.to_string()));
    }
}

#[test]
fn the_log_is_replayed() {
    for (until, digest) in [3, 6].into_iter().zip(DIGESTS) {
        let (strategy, model) = replay(&golden("integer").join("run.replay"), first(), Some(until)).expect("replays");
        assert_eq!((strategy.generation(), portable_digest(&model).as_str()), (until, digest));
    }
    let folder = copy("integer");
    let log = folder.path().join("run.replay");
    refuses_a_changed_byte(&log, || replay(&log, first(), None).err().map(|error| error.to_string()));
}
