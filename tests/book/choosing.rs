//! Choosing sigma by experiment.

use burn::tensor::Distribution;
use eggroll::prelude::*;
use eggroll::run::diagnostics::step_statistics;

#[test]
fn a_pretrained_model() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let pretrained = nn::LinearConfig::new(8, 2).init(&device);
    let x = Tensor::<2>::random([16, 8], Distribution::Default, &device);
    let y = Tensor::<2>::ones([16, 2], &device);
    let score = |model: &nn::Linear, population: &Population| {
        population.evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone()))
    };
    let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_noise_scale(NoiseScale::RelativeToSpread)
        .with_sigma(0.03)
        .with_learning_rate(0.1)
        .with_anchor_decay(0.01)
        .with_frozen(["bias"])
        .try_init(&pretrained)?;
    let mut model = pretrained.clone();

    let population = strategy.ask();
    let fitness = score(&model, &population);
    let before = model.clone(); // tensors are shared
    strategy.tell(&mut model, population, fitness)?;
    println!("{}", step_statistics(&strategy, &before, &model));
    let step = step_statistics(&strategy, &before, &model).total;
    assert!(step.changed > 0.9 && step.to_noise > 0.05 && step.to_noise < 1.0, "{step}");
    Ok(())
}

#[test]
fn sigma_by_experiment() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let model = nn::LinearConfig::new(8, 2).init(&device);
    let x = Tensor::<2>::random([16, 8], Distribution::Default, &device);
    let y = Tensor::<2>::ones([16, 2], &device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(64);
    let mut strategy = config.try_init(&model)?;
    // ANCHOR: probe
    let mean_model: f32 = -(model.forward(x.clone()) - y.clone()).square().mean().into_scalar::<f32>();
    let probe = strategy.probe_sigma(&model, [0.001, 0.01, 0.1, 1.0], |population| {
        population.evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone()))
    })?;
    println!("the mean model scores {mean_model}\n{probe}");
    if let Some(sigma) = probe.recommended() {
        strategy.set_sigma(sigma)?;
    }
    // ANCHOR_END: probe
    let [smallest, .., largest] = &probe.sigmas[..] else { panic!("{probe}") };
    let loss = |mean: f64| (mean - f64::from(mean_model)).abs();
    assert!(probe.recommended().is_some() && loss(largest.mean) > 10.0 * loss(smallest.mean), "{mean_model}\n{probe}");
    Ok(())
}
