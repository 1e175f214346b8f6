//! All optimizers of the registry, Burn's and ours, with every setting that has a number.

use super::strategies::generation_of;
use super::walk::walk;
use crate::reliability::support::*;
use burn::grad_clipping::GradientClippingConfig;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::*;
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_train::*;

const CLIPPING: [GradientClippingConfig; 2] = [GradientClippingConfig::Norm(0.5), GradientClippingConfig::Value(0.25)];

/// Walks an optimizer's own configuration: as JSON it could not have NaN.
fn own<C>(config: C)
where
    C: serde::Serialize + serde::de::DeserializeOwned + Into<OptimizerConfig>,
{
    let name = serde_json::to_string(&config).expect("writes");
    walk(&name, &config, |config: C| match config.into() {
        integer @ OptimizerConfig::IntegerAdamW(_) => {
            let config = EvolutionStrategyConfig::new(QEggrollConfig::new(), integer).with_learning_rate(0.5);
            generation_of::<Integers>(config.with_population_size(POPULATION))
        }
        optimizer => {
            let config = EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer).with_learning_rate(0.01);
            generation_of::<Net>(config.with_population_size(POPULATION))
        }
    });
}

/// The configurations with which an optimizer's numbers are all there.
fn walked(optimizer: &OptimizerConfig) {
    let decay = || Some(WeightDecayConfig::new(0.01));
    match optimizer {
        OptimizerConfig::Sgd(_) => {
            for clipping in CLIPPING {
                let momentum = Some(MomentumConfig::new());
                own(SgdConfig::new()
                    .with_weight_decay(decay())
                    .with_momentum(momentum)
                    .with_gradient_clipping(Some(clipping)));
            }
        }
        OptimizerConfig::Adam(_) => {
            let [norm, value] = CLIPPING;
            own(AdamConfig::new().with_weight_decay(decay()).with_grad_clipping(Some(norm)));
            own(AdamConfig::new().with_amsgrad(true).with_grad_clipping(Some(value)));
        }
        OptimizerConfig::AdamW(config) => own(config.clone()),
        OptimizerConfig::RmsProp(_) => {
            own(RmsPropConfig::new().with_weight_decay(decay()));
            own(RmsPropConfig::new().with_centered(true));
        }
        OptimizerConfig::AdaGrad(_) => own(AdaGradConfig::new().with_weight_decay(decay())),
        OptimizerConfig::Adan(config) => own(config.clone()),
        OptimizerConfig::Lamb(config) => own(config.clone()),
        OptimizerConfig::Lion(config) => own(config.clone()),
        OptimizerConfig::Adafactor(config) => own(config.clone()),
        OptimizerConfig::Muon(_) => {
            let matrices = MuonConfig::new().with_weight_decay(decay());
            own(MuonAdamWConfig::new().with_matrices(matrices));
        }
        OptimizerConfig::ClipUp(config) => own(config.clone()),
        OptimizerConfig::IntegerAdamW(config) => own(config.clone()),
        other => panic!("{other:?} is new: let it be walked here"),
    }
}

#[test]
fn optimizers_of_the_registry() {
    for name in OptimizerConfig::NAMES {
        walked(&name.parse().expect("registered"));
    }
}

/// As files say them: what JSON has no word for is refused by the parser.
#[test]
fn as_text() {
    for name in OptimizerConfig::NAMES {
        let read = |value: &str| {
            let text = format!(r#"{{ "name": "{name}", "epsilon": {value} }}"#);
            serde_json::from_str::<OptimizerConfig>(&text).map_err(|error| error.to_string())
        };
        for value in ["1e300", "0", "-1", "1e-320"] {
            match read(value).map(|config| config.validate().map_err(|error| error.to_string())) {
                Ok(Ok(())) => panic!("{name}: epsilon {value} is used"),
                Ok(Err(error)) | Err(error) => assert!(error.contains("epsilon"), "{name}: {error}"),
            }
        }
    }
}
