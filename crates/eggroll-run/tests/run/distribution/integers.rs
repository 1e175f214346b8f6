//! Q-EGGROLL on replicas: members that carry a state, each replica that of its own.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_run::distribution::{Alone, Communicator, evaluate_sharded, on_devices};
use eggroll_run::*;
use eggroll_train::*;

const VOCAB: usize = 256;
const MEMBERS: usize = 14;
const STEPS: usize = 6;
const GENERATIONS: u64 = 5;

/// Weights that depend on nothing but their places.
pub fn model(device: &Device) -> EggModel {
    struct FillInt8<'a>(&'a Device);
    impl ModuleMapper for FillInt8<'_> {
        fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
            param.map(|value| {
                let dims = value.dims();
                let values: Vec<i8> = (0..dims.iter().product()).map(|i: usize| (i * 37 % 31) as i8 - 15).collect();
                Tensor::from_data(TensorData::new(values, dims), (self.0, integer_type(self.0)))
            })
        }
    }
    EggModelConfig::new().with_layers(1).with_width(16).init(device).map(&mut FillInt8(device))
}

/// `[MEMBERS, STEPS + 1]`
fn tokens(generation: u64, device: &Device) -> Tensor<2, Int> {
    let token = |i: usize| ((i * 7 + generation as usize * 13) % 50 + 40) as i32;
    let values: Vec<i32> = (0..MEMBERS * (STEPS + 1)).map(token).collect();
    Tensor::from_data(TensorData::new(values, [MEMBERS, STEPS + 1]), device)
}

fn score(
    model: &EggModel,
    tokens: &Tensor<2, Int>,
    members: &MemberChunk,
    state: EggState,
) -> (Tensor<1, Int>, EggState) {
    let (rows, count) = (members.rows(tokens.clone()), members.count());
    let (logits, state) = model.forward(rows.clone().narrow(1, 0, STEPS), state);
    let targets = rows.narrow(1, 1, STEPS).reshape([count * STEPS]);
    (log_likelihood(logits.reshape([count * STEPS, VOCAB]), targets, count, Rounding::Floor), state)
}

/// The digest of the parameters that a replica has trained.
pub fn train(communicator: &mut impl Communicator, device: &Device, seed: u64) -> String {
    let mut model = model(device);
    let noiser = QEggrollConfig::new().with_threshold(4.0, 10);
    let config = EvolutionStrategyConfig::integer(noiser).with_population_size(MEMBERS).with_seed(seed);
    let mut strategy = config.init(&model);
    let mut carried = None;
    while strategy.generation() < GENERATIONS {
        let (population, tokens) = (strategy.ask(), tokens(strategy.generation(), device));
        let fitness = evaluate_sharded(&population, communicator, |slice| {
            let state = carried.take().unwrap_or_else(|| model.initial_state(slice.count()));
            let (fitness, state) =
                slice.evaluate_with_state(state, |members, state| score(&model, &tokens, members, state));
            carried = Some(state);
            fitness
        });
        let fitness = fitness.expect("of all ranks");
        assert!(fitness.integers().is_some(), "integers stay so");
        strategy.tell(&mut model, population, fitness).expect("a generation");
        let checked = communicator.check_digest(strategy.generation(), &portable_digest(&model));
        checked.expect("equal on all ranks");
    }
    portable_digest(&model)
}

#[test]
fn replicas_vote_as_one_process() {
    let device = Device::flex();
    let expected = train(&mut Alone, &device, 3);
    for size in [1, 2, 3, 4, 9] {
        for digest in on_devices(&vec![device.clone(); size], |mut threads, device| train(&mut threads, device, 3)) {
            assert_eq!(digest, expected, "{size} replicas");
        }
    }
    assert_ne!(train(&mut Alone, &device, 4), expected, "canary");
    assert_ne!(portable_digest(&model(&device)), expected, "canary: nothing was learned");
}
