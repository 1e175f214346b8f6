//! Nodes on devices of several kinds: refused where floats would be rounded otherwise, equal where nothing is rounded.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{IntegerNet, LearningModel, Net};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, DeviceKind, Int, Tensor};
use eggroll_core::ops::integer::integer_type;
use eggroll_nats::{NatsError, Worker};
use eggroll_run::distribution::Distribution;
use eggroll_run::*;

fn gpu() -> Device {
    Device::wgpu(DeviceKind::DefaultDevice)
}

/// Integers as a device stores them.
struct Move(Device);

impl ModuleMapper for Move {
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        param.map(|tensor| Tensor::from_data(tensor.into_data(), (&self.0, integer_type(&self.0))))
    }
}

#[test]
fn floats_of_another_device_are_another_run() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let model = Net::start().to_device(&gpu());
    let refused = work_from(&config(&url, "stranger"), model, Net::strategy(), |_, _| unreachable!("refused before"));
    assert!(matches!(refused, Err(NatsError::OtherRun { .. })), "{refused:?}");
    let _steady = Start::worker("steady", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
}

#[test]
fn integers_are_equal_on_all_devices() {
    let Some(server) = Server::start() else { return };
    let coordinator = Local::start::<IntegerNet>(config(&server.url(), "coordinator"));
    let model = IntegerNet::start().map(&mut Move(gpu()));
    let worker = Worker::connect(&config(&server.url(), "gpu")).expect("connects");
    let mut strategy = IntegerNet::strategy().init(&model);
    let model = TrainingLoop::new(GENERATIONS).run_distributed(
        &mut Distribution::of(worker),
        &mut strategy,
        model,
        |model: &IntegerNet, population| Ok(model.fitness_on(population, &gpu())),
        |_, _| unreachable!("of who leads"),
    );
    let model = model.expect("works");
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<IntegerNet>());
    assert_eq!(parameter_digest(&model.map(&mut Move(Device::flex()))), expected::<IntegerNet>());
    assert!(outcome.counts.by_node.contains_key("gpu"), "{:?}", outcome.counts);
}
