//! Models without noise, fused and on tensors.

use crate::rollouts::{fixed, mlp};
use burn::module::{Lora, Module};
use burn::nn::activation::ActivationConfig;
use burn::tensor::Device;
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_rl::{ActionHead, CartPole, EvaluationConfig, Pendulum, RolloutConfig, TensorEnvironment};

/// A model without noise gives the same episodes fused and on tensors, however many there are: but for the rounding of Burn's products, which actions
/// of CartPole do not have, and which grows while a pendulum swings.
#[test]
fn models_run_fused_as_on_tensors() {
    fn equal<E: TensorEnvironment + Clone>(
        environment: &E,
        policy: &Mlp,
        config: &RolloutConfig,
        rounding: f32,
    ) -> Vec<f32> {
        let [fused, tensors] = [true, false].map(|fused| {
            let mut rollouts = config.clone().with_fused(fused).init(environment.clone()).expect("valid");
            [1, 7, 57, 130].map(|count| {
                let found =
                    rollouts.evaluate_model(policy, &EvaluationConfig::new(count).with_seed(2), &Device::flex());
                rollouts.update_normalizer(&found);
                found
            })
        });
        for (fused, tensors) in fused.iter().zip(&tensors) {
            assert_eq!(fused.lengths(), tensors.lengths(), "{config:?}");
            for (fused, tensors) in fused.returns().iter().zip(tensors.returns()) {
                assert!((fused - tensors).abs() <= rounding * tensors.abs(), "{fused} {tensors} {config:?}");
            }
        }
        assert!(fused[3].returns().windows(2).any(|pair| (pair[0] / pair[1] - 1.0).abs() > 100.0 * rounding), "canary");
        fused[3].returns().to_vec()
    }
    // More columns than a tile of any processor.
    let cart = fixed(MlpConfig::new(vec![4, 70, 2]).with_activation(ActivationConfig::Tanh).init(&Device::flex()));
    let pendulum = mlp(&Pendulum::new(), ActivationConfig::Tanh);
    for config in [
        RolloutConfig::new(),
        RolloutConfig::new().with_normalize_observations(true),
        RolloutConfig::new().with_action_repeat(3),
    ] {
        equal(&CartPole::new(), &cart, &config, 0.0);
        equal(&CartPole::new(), &cart, &config.clone().with_head(ActionHead::Sampled), 0.0);
        equal(&Pendulum::new(), &pendulum, &config, 1e-4);
    }
    // An adapter is part of the weight.
    let adapted = fixed(pendulum.clone().apply_lora(Lora::new(2, 0.5)));
    let of = |policy: &Mlp| equal(&Pendulum::new(), policy, &RolloutConfig::new(), 1e-4);
    assert_ne!(of(&adapted), of(&pendulum));
}
