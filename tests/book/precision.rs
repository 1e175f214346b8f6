//! Models of half precision.

use burn::module::{ModuleMapper, Param};
use burn::tensor::DType;
use eggroll::prelude::*;

/// Casts all float parameters.
struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value.cast(self.0))
    }
}

#[test]
fn half_precision_trains() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let error = |model: &nn::Linear, x: Tensor<2>, y: Tensor<2>| -> f32 {
        (model.forward(x) - y).cast(DType::F32).square().mean().into_scalar()
    };
    for dtype in [DType::F16, DType::BF16] {
        let mut model = nn::LinearConfig::new(4, 2).init(&device).map(&mut Cast(dtype));
        let x = Tensor::<2>::ones([3, 4], &device).cast(dtype);
        let y = Tensor::<2>::full([3, 2], 3.0, &device).cast(dtype);
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
            .with_population_size(64)
            .with_sigma(0.1) // at least the distance of neighboring weights
            .with_learning_rate(0.5);
        let mut strategy = config.try_init(&model)?;
        let before = error(&model, x.clone(), y.clone());
        for _ in 0..30 {
            let population = strategy.ask();
            let fitness = population.evaluate(|members| -members.mse(model.forward_shared(x.clone()), y.clone()));
            strategy.tell(&mut model, population, fitness)?;
        }
        assert_eq!(model.weight.val().dtype(), dtype);
        let after = error(&model, x, y);
        assert!(after < 0.1 * before, "{dtype:?}: {before} {after}");
    }
    Ok(())
}

#[test]
fn masters_take_small_steps() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let ones = || nn::LinearConfig::new(4, 2).init(&device).map(&mut Ones).map(&mut Cast(DType::BF16));
    let x = Tensor::<2>::ones([3, 4], &device).cast(DType::BF16);
    let moved = |config: EvolutionStrategyConfig| -> Result<f32, eggroll::Error> {
        let mut model = ones();
        let mut strategy = config.try_init(&model)?;
        for _ in 0..30 {
            let population = strategy.ask();
            let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
            strategy.tell(&mut model, population, fitness)?;
        }
        Ok((model.weight.val() - ones().weight.val()).cast(DType::F32).abs().max().into_scalar())
    };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), OptimizerConfig::default())
        .with_population_size(64)
        .with_sigma(0.1)
        .with_learning_rate(0.001) // a quarter of half the distance between neighbors of 1
        .with_master_weights(true);
    assert!(moved(config.clone())? > 0.01);
    assert_eq!(moved(config.with_master_weights(false))?, 0.0, "canary");
    Ok(())
}

struct Ones;

impl ModuleMapper for Ones {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value.ones_like())
    }
}
