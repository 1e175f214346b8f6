//! A generation on a device: the same model as on the CPU, one host read, kernels of ours.

#![cfg(all(feature = "wgpu", feature = "flex"))]

use crate::support::{Net, sines_on};
use burn::optim::SgdConfig;
use burn::tensor::{Device, DeviceKind, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiseSourceConfig, counters};
use eggroll_nn::Linear;
use eggroll_train::EvolutionStrategyConfig;

/// Parameters after three generations.
fn train(source: NoiseSourceConfig, distribution: NoiseDistribution, device: &Device) -> Vec<f32> {
    let mut net = Net::on(device);
    let x = sines_on(20, device).reshape([5, 4]);
    let noiser = EggrollConfig::new().with_rank(2).with_distribution(distribution);
    let config = EvolutionStrategyConfig::new(noiser, SgdConfig::new())
        .with_population_size(24)
        .with_learning_rate(0.5)
        .with_noise_source(source);
    let mut strategy = config.init(&net);
    for _ in 0..3 {
        let before = counters::snapshot();
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((net.forward(x.clone()) - 0.5).square()));
        strategy.tell(&mut net, population, fitness).expect("a generation");
        assert_eq!((counters::snapshot() - before).host_reads, 1);
    }
    let values = |layer: Linear| {
        let bias = layer.bias.expect("a bias").val();
        Tensor::cat(vec![layer.weight.val().flatten(0, 1), bias], 0).into_data().try_to_vec::<f32>().expect("f32")
    };
    [values(net.first), values(net.second)].concat()
}

#[test]
fn trains_as_on_the_cpu() {
    let device = Device::wgpu(DeviceKind::DefaultDevice);
    let (normal, rademacher) = (NoiseDistribution::Normal, NoiseDistribution::Rademacher);
    for (source, distribution) in [
        (NoiseSourceConfig::OnTheFly, normal),
        (NoiseSourceConfig::Cached, normal),
        (NoiseSourceConfig::Table { len: 4096 }, normal),
        (NoiseSourceConfig::OnTheFly, rademacher),
    ] {
        let expected = train(source, distribution, &Device::flex());
        let kernels = counters::kernels();
        let found = train(source, distribution, &device);
        // Two layers and four estimates in each of three generations, at least.
        assert!(counters::kernels() - kernels >= 3 * 6, "{source:?}");
        let off = found.iter().zip(&expected).map(|(f, e)| (f - e).abs()).fold(0.0, f32::max);
        assert!(off < 1e-4, "{source:?}: {off}");
        let start = train(NoiseSourceConfig::Table { len: 8192 }, distribution, &device);
        let other = start.iter().zip(&expected).map(|(f, e)| (f - e).abs()).fold(0.0, f32::max);
        assert!(other > 1e-2, "canary, {source:?}: {other}");
    }
}
