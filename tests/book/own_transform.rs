//! A transform of the gradient.

use burn::optim::AdamConfig;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;

// ANCHOR: transform
/// Weighs each value by how often its sign was the same lately.
struct Agreement {
    memory: f64,
}

impl GradientTransform for Agreement {
    /// A mean of signs for each value.
    fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
        values.iter().map(Tensor::zeros_like).collect()
    }

    fn update(&self, signs: &mut [Tensor<1>], parameters: &mut [ParameterGradient]) {
        for (mean, parameter) in signs.iter_mut().zip(parameters) {
            let sign = parameter.gradient.clone().sign();
            *mean = mean.clone() * self.memory + sign * (1.0 - self.memory);
            parameter.gradient = parameter.gradient.clone() * mean.clone().abs();
        }
    }
}
// ANCHOR_END: transform

#[test]
fn a_run_continues_with_what_it_remembers() -> Result<(), eggroll::Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut model = LinearConfig::new(4, 8).init(&Device::flex());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_transform("agreement 0.9", Agreement { memory: 0.9 })
        .with_transform("biases at half rate", |parameters: &mut [ParameterGradient]| {
            for parameter in parameters.iter_mut().filter(|parameter| parameter.shape().len() == 1) {
                parameter.gradient = parameter.gradient.clone() * 0.5;
            }
        });
    let x = Tensor::<2>::ones([1, 4], &Device::flex());
    let generation = |strategy: &mut EvolutionStrategy, model: &mut Linear| {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
        strategy.tell(model, population, fitness).map(drop)
    };
    let mut strategy = config.try_init(&model)?;
    generation(&mut strategy, &mut model)?;
    let checkpoints = Checkpoints::new(folder.path()).with_config(&config);
    checkpoints.save(&strategy, &model)?;
    let (mut continued, mut other) = checkpoints.load_latest(model.clone())?.expect("saved");
    generation(&mut strategy, &mut model)?;
    generation(&mut continued, &mut other)?;
    assert_eq!(model.weight.val().into_data(), other.weight.val().into_data());
    assert!(continued.to_record().transforms.is_some());
    Ok(())
}
