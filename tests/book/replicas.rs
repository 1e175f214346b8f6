//! Replicas of a run on several devices of one process.

use burn::optim::AdamConfig;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll::run::distribution::{Distribution, on_devices};
use std::ops::ControlFlow;

// ANCHOR: replicas
fn train(mut replica: Distribution, model: Linear, device: &Device) -> Result<Linear, eggroll::Error> {
    let x = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(30);
    let mut strategy = config.try_init(&model)?;
    let model = TrainingLoop::new(20).run_distributed(
        &mut replica,
        &mut strategy,
        model,
        |model, slice| Ok(slice.evaluate(|members| members.mean(model.forward_shared(x.clone())))),
        |_model, _report| Ok(ControlFlow::Continue(())), // of rank 0
    )?;
    Ok(model)
}

fn train_on(devices: &[Device], model: &Linear) -> Result<Vec<Linear>, eggroll::Error> {
    let run = |replica, device: &Device| train(Distribution::new(replica), model.clone().to_device(device), device);
    on_devices(devices, run).into_iter().collect()
}
// ANCHOR_END: replicas

#[test]
fn replicas_are_equal() {
    let (device, model) = (Device::flex(), LinearConfig::new(2, 1).init(&Device::flex()));
    let alone = train(Distribution::default(), model.clone(), &device).expect("a run");
    for trained in train_on(&[device.clone(), device.clone(), device], &model).expect("a run") {
        assert_eq!(parameter_digest(&trained), parameter_digest(&alone));
    }
    assert_ne!(parameter_digest(&model), parameter_digest(&alone), "canary");
}
