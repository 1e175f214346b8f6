use super::*;
use burn::optim::{AdamConfig, OptimizerRecord};
use burn::tensor::{Bytes, Device, Tensor};
use eggroll_core::{EggrollConfig, NoiseSourceConfig};
use eggroll_nn::{Linear, LinearConfig};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn start() -> (Linear, EvolutionStrategy) {
    let model = LinearConfig::new(3, 2).init(&Device::flex());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let strategy = config.with_population_size(4).with_noise_source(NoiseSourceConfig::Cached).init(&model);
    (model, strategy)
}

fn generation(strategy: &mut EvolutionStrategy, model: Linear) -> Linear {
    let population = strategy.ask();
    let x = Tensor::<2>::ones([1, 3], &Device::flex());
    let fitness = population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone()))));
    let mut model = model;
    strategy.tell(&mut model, population, fitness).expect("a generation");
    model
}

/// Holds a lock and panics.
fn poison<T: Send>(mutex: &Mutex<T>) {
    let panicked = std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = mutex.lock();
            panic!("while it is held");
        });
        holder.join().is_err()
    });
    assert!(panicked && mutex.is_poisoned());
}

/// As where a device runs out of memory: whoever catches that continues.
#[test]
fn a_panic_while_noise_is_held_leaves_the_strategy_usable() {
    let (model, mut strategy) = start();
    let expected = generation(&mut strategy.clone(), model.clone()).weight.val().into_data();
    poison(&strategy.held);
    let population = strategy.ask();
    poison(&population.uses);
    poison(&population.inputs);
    let x = Tensor::<2>::ones([1, 3], &Device::flex());
    let fitness = population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone()))));
    let mut model = model;
    strategy.tell(&mut model, population, fitness).expect("a generation");
    assert_eq!(model.weight.val().into_data(), expected);
    generation(&mut strategy, model);
}

/// The same record with other bytes in place of a name.
fn renamed(record: OptimizerRecord, name: &str, other: &str) -> OptimizerRecord {
    let mut bytes = record.into_bytes().expect("writes").to_vec();
    let places = bytes.windows(name.len()).enumerate().filter(|(_, part)| *part == name.as_bytes());
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    assert!(!places.is_empty(), "a name of the format");
    places.into_iter().for_each(|place| bytes[place..place + name.len()].copy_from_slice(other.as_bytes()));
    OptimizerRecord::from_bytes(Bytes::from_bytes_vec(bytes)).expect("reads")
}

#[test]
fn records_that_burn_panics_of_are_errors() {
    let (model, mut strategy) = start();
    let model = generation(&mut strategy, model);
    let wrong = || {
        let record = strategy.to_record();
        StrategyRecord { optimizer: renamed(record.optimizer, "param_id", "param_ix"), ..record }
    };
    let (panicking, record) = (start().1, wrong());
    let panicked = catch_unwind(AssertUnwindSafe(|| panicking.load_record(record))).is_err();
    assert!(panicked, "canary: Burn panics of it");
    let error = start().1.try_load_record(wrong()).map(drop).expect_err("refused").to_string();
    assert!(error.starts_with("the state of the optimizer cannot be loaded: ") && error.contains("id"), "{error}");

    let fresh = strategy.config().init(&model);
    let mut restored = fresh.try_load_record(strategy.to_record()).expect("its own");
    assert_eq!(restored.generation(), 1);
    let [one, other] = [&mut strategy, &mut restored].map(|strategy| generation(strategy, model.clone()));
    assert_eq!(one.weight.val().into_data(), other.weight.val().into_data());
}
