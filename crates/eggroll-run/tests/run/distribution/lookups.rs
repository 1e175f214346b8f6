//! Embeddings on replicas, whose members read different tokens: estimates that leave out rows are those of one process.

use crate::distribution::support::{MEMBERS, sines};
use burn::module::Param;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Embedding;
use eggroll_run::distribution::{Alone, Communicator, evaluate_sharded, on_devices};
use eggroll_run::*;
use eggroll_train::*;

/// More than a word of bits.
const VOCABULARY: usize = 70;
const WIDTH: usize = 4;

fn train(communicator: &mut impl Communicator, projection: InputProjection) -> String {
    let weight = sines(VOCABULARY * WIDTH).reshape([VOCABULARY, WIDTH]);
    let mut model = Embedding { weight: Param::from_tensor(weight) };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let config = config.with_population_size(MEMBERS).with_input_projection(projection);
    let mut strategy = config.init(&model);
    for generation in 0..4 {
        let population = strategy.ask();
        let tokens: Vec<i32> = (0..MEMBERS).map(|member| (7 * (member / 2 + generation)) as i32 % 70).collect();
        let tokens = Tensor::<1, Int>::from_ints(&tokens[..], &Device::flex()).reshape([MEMBERS, 1]);
        let fitness = evaluate_sharded(&population, communicator, |slice| {
            slice.evaluate(|members| members.mean(model.forward(members.rows(tokens.clone())).square()))
        });
        strategy.tell(&mut model, population, fitness.expect("of all ranks")).expect("a generation");
        communicator.check_digest(strategy.generation(), &portable_digest(&model)).expect("equal on all ranks");
    }
    portable_digest(&model)
}

#[test]
fn replicas_leave_the_same_rows() {
    let expected = train(&mut Alone, InputProjection::Shared);
    for size in [2, 3, 13] {
        let devices = vec![Device::flex(); size];
        for digest in on_devices(&devices, |mut threads, _| train(&mut threads, InputProjection::Shared)) {
            assert_eq!(digest, expected, "{size} replicas");
        }
    }
    assert_ne!(train(&mut Alone, InputProjection::Off), expected, "canary");
}
