//! Choosing sigma by experiment.

use burn::tensor::Distribution;
use eggroll::prelude::*;

#[test]
fn sigma_by_experiment() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let model = nn::LinearConfig::new(8, 2).init(&device);
    let x = Tensor::<2>::random([16, 8], Distribution::Default, &device);
    let y = Tensor::<2>::ones([16, 2], &device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(64);
    // ANCHOR: sigma
    let score = |sigma: f64| -> Result<Fitness, eggroll::Error> {
        let strategy = config.clone().with_sigma(sigma).try_init(&model)?;
        Ok(strategy.ask().evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone())))
    };
    let mean_model: f32 = -(model.forward(x.clone()) - y.clone()).square().mean().into_scalar::<f32>();
    for sigma in [0.001, 0.01, 0.1, 1.0] {
        let fitness = score(sigma)?;
        let variance = fitness.values().iter().map(|f| (f64::from(*f) - fitness.mean()).powi(2)).sum::<f64>() / 64.0;
        let (mean, spread) = (fitness.mean(), variance.sqrt());
        println!("sigma {sigma}: mean {mean:.4}, spread {spread:.4}, mean model {mean_model:.4}");
    }
    // ANCHOR_END: sigma
    let mut strategy = config.try_init(&model)?;
    // ANCHOR: probe
    let probe = strategy.probe_sigma(&model, &[0.001, 0.01, 0.1, 1.0], |population| {
        population.evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone()))
    })?;
    println!("{probe}"); // a table
    if let Some(sigma) = probe.recommended() {
        strategy.set_sigma(sigma)?;
    }
    // ANCHOR_END: probe
    assert!(probe.sigmas.len() == 4 && probe.recommended().is_some(), "{probe}");
    let loss = |sigma| Ok::<_, eggroll::Error>((score(sigma)?.mean() - f64::from(mean_model)).abs());
    assert!(loss(1.0)? > 10.0 * loss(0.001)?, "canary: a large sigma costs nothing");
    Ok(())
}
