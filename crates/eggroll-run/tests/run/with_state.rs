//! Members' state: saved with a checkpoint, so that a run continues as if it had not stopped.

use burn::tensor::Device;
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_nn::integer::SavedState;
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_run::text::{ByteStreams, Text};
use eggroll_run::{Checkpoints, diagnostics, parameter_digest};
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, MemberChunk};
use std::fs;

const POPULATION: usize = 8;

/// A run at some generation.
struct StatefulRun {
    strategy: EvolutionStrategy,
    model: EggModel,
    state: EggState,
    streams: ByteStreams,
}

fn model(device: &Device) -> EggModel {
    EggModelConfig::new().with_layers(2).with_width(16).init(device)
}

impl StatefulRun {
    fn new() -> Self {
        let device = Device::flex();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        fs::write(&path, (0..500u32).map(|i| (i * i % 97 + 30) as u8).collect::<Vec<_>>()).expect("writes");
        let model = model(&device);
        let config =
            EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(POPULATION).with_chunk_size(4);
        Self {
            strategy: config.try_init(&model).expect("a strategy"),
            state: model.initial_state(POPULATION),
            model,
            streams: ByteStreams::new(Text::read(&path).expect("opens"), POPULATION / 2, 6).expect("streams"),
        }
    }

    fn until(&mut self, generation: u64) {
        while self.strategy.generation() < generation {
            let population = self.strategy.ask();
            let batch = self.streams.batch(population.generation(), 2, &Device::flex());
            let model = self.model.clone();
            let score = |members: &MemberChunk, state: EggState| {
                let (logits, state) = model.forward(members.rows(batch.inputs.clone()), state);
                let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1);
                (log_likelihood(logits.flatten::<2>(0, 1), targets, members.count(), Rounding::Floor), state)
            };
            let (fitness, state) = population.evaluate_with_state(self.state.clone(), score);
            self.state = state;
            self.strategy.tell(&mut self.model, population, fitness).expect("a generation");
        }
    }

    fn saved(&self) -> SavedState {
        self.state.clone().into()
    }

    fn digests(&self) -> [String; 2] {
        [parameter_digest(&self.model), parameter_digest(&self.saved())]
    }
}

#[test]
fn resume_is_bit_for_bit_with_the_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let mut run = StatefulRun::new();
    run.until(5);
    checkpoints.save_with_state(&run.strategy, &run.model, &run.saved()).expect("saves");
    let at_five = run.digests();
    run.until(12);

    let load = |run: StatefulRun| {
        let device = Device::flex();
        let empty = SavedState::from(run.model.initial_state(POPULATION));
        let loaded = checkpoints.load_latest_with_state(model(&device), empty).expect("loads");
        let (strategy, model, state) = loaded.expect("is there");
        StatefulRun { strategy, model, state: state.into(), ..run }
    };
    let streams = run.streams.clone();
    let mut resumed = load(StatefulRun { streams, ..StatefulRun::new() });
    assert_eq!(resumed.digests(), at_five);
    resumed.until(12);
    assert_eq!(resumed.digests(), run.digests());
    // Canary: without the state the run goes another way.
    let mut forgetful = load(resumed);
    forgetful.state = forgetful.model.initial_state(POPULATION);
    forgetful.until(12);
    assert_ne!(forgetful.digests(), run.digests());
    // And it did continue from generation 5.
    assert_ne!(at_five, run.digests());
}

#[test]
fn a_state_that_is_missing_or_of_other_members_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let run = StatefulRun::new();
    let load = |members: usize| {
        let empty = SavedState::from(run.model.initial_state(members));
        checkpoints.load_latest_with_state(run.model.clone(), empty)
    };
    assert!(load(POPULATION).expect("no folder yet").is_none());
    checkpoints.save_with_state(&run.strategy, &run.model, &run.saved()).expect("saves");
    let error = load(POPULATION + 2).err().expect("refused").to_string();
    assert!(error.contains("carried.bpk") && error.contains("of shape [10, 16]"), "{error}");
    // Saved anew without a state.
    checkpoints.save(&run.strategy, &run.model).expect("saves");
    let error = load(POPULATION).err().expect("refused").to_string();
    assert!(error.contains("carried.bpk"), "{error}");
}

#[test]
fn a_generation_moves_a_share_of_the_weights() {
    let mut run = StatefulRun::new();
    let before = run.model.clone();
    assert_eq!(diagnostics::changed_share(&before, &run.model), 0.0);
    run.until(1);
    // At first every weight moves by one, except for saturated ones.
    let share = diagnostics::changed_share(&before, &run.model);
    assert!(share > 0.99, "{share}");
}
