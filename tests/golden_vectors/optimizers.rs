//! Optimizers on estimated gradients: the Adam, AdamW and momentum tags of `jax_updates.npz`.
//!
//! burn-optim's defaults are not the reference's: its Adam has ε 1e-5 (there 1e-8), its momentum a dampening of 0.1
//! (there none).

use crate::compare::{ROUNDING, assert_close, assert_differs};
use crate::hosts;
use crate::loader::Golden;
use crate::updates::{TrainingCase, parameter};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use eggroll::core::EggrollConfig;
use eggroll::train::{GradientScale, OptimizerConfig};

fn adam() -> OptimizerConfig {
    AdamConfig::new().with_beta_1(0.9).with_beta_2(0.999).with_epsilon(1e-8).into()
}

fn adam_w(weight_decay: f32) -> OptimizerConfig {
    let config = AdamWConfig::new().with_beta_1(0.9).with_beta_2(0.999).with_epsilon(1e-8);
    config.with_weight_decay(weight_decay).into()
}

fn momentum(dampening: f64) -> OptimizerConfig {
    let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(dampening);
    SgdConfig::new().with_momentum(Some(momentum)).into()
}

/// One step on the noise of the file's generation.
fn one_step(tag: &'static str, rank: usize, optimizer: OptimizerConfig) -> TrainingCase {
    TrainingCase {
        tag,
        noiser: EggrollConfig::new().with_rank(rank).into(),
        optimizer,
        steps: 1,
        noise_reuse: 1,
        clip_norm: None,
    }
}

/// Three steps on the noise of generation 0, which all generations share.
fn three_steps(tag: &'static str, optimizer: OptimizerConfig) -> TrainingCase {
    TrainingCase {
        tag,
        noiser: EggrollConfig::new().with_rank(4).into(),
        optimizer,
        steps: 3,
        noise_reuse: 0,
        clip_norm: None,
    }
}

fn cases() -> [TrainingCase; 5] {
    [
        one_step("eggroll_r1_adamw", 1, adam_w(1e-4)),
        one_step("eggroll_r4_adamw", 4, adam_w(1e-4)),
        three_steps("eggroll_r4_adam3", adam()),
        three_steps("eggroll_r4_adamw3", adam_w(0.01)),
        three_steps("eggroll_r4_sgdm3", momentum(0.0)),
    ]
}

#[test]
fn optimizers() {
    let golden = Golden::open("jax_updates.npz");
    for device in hosts() {
        for case in cases() {
            case.check(&golden, &device);
        }
    }
}

/// Settings and the number of steps matter. (With the same gradient thrice, as in the file, Adam's betas do not.)
#[test]
fn canary_other_settings_differ() {
    let golden = Golden::open("jax_updates.npz");
    let eggroll = || EggrollConfig::new().with_rank(4).into();
    let case = |tag, optimizer, steps| TrainingCase {
        tag,
        noiser: eggroll(),
        optimizer,
        steps,
        noise_reuse: 0,
        clip_norm: None,
    };
    for device in hosts() {
        for wrong in [
            case("eggroll_r4_adam3", adam(), 2),
            case("eggroll_r4_sgdm3", momentum(0.0), 2),
            case("eggroll_r4_sgdm3", momentum(0.1), 3),
            case("eggroll_r4_sgdm3", SgdConfig::new().into(), 3),
            case("eggroll_r4_adamw3", adam_w(0.0), 3),
        ] {
            let found = wrong.train(&golden, golden.values("fitness"), GradientScale::SqrtPopulation, &device);
            let expected = parameter(&golden, &format!("{}_new", wrong.tag), "w").values;
            let what = format!("{}, {} steps, {:?}", wrong.tag, wrong.steps, wrong.optimizer);
            assert_differs(&what, &found.parameters["w"], &expected, ROUNDING);
        }
    }
}

/// The file's noise of generation 0, which noise reuse 0 selects, is not that of its own generation.
#[test]
fn canary_another_noise_generation_differs() {
    let golden = Golden::open("jax_updates.npz");
    let eggroll = || EggrollConfig::new().with_rank(4).into();
    let gradient = |noise_reuse, device: &_| {
        let optimizer = momentum(0.0);
        let case = TrainingCase { tag: "", noiser: eggroll(), optimizer, steps: 1, noise_reuse, clip_norm: None };
        case.train(&golden, golden.values("fitness"), GradientScale::SqrtPopulation, device).gradients["w"].clone()
    };
    for device in hosts() {
        let expected = parameter(&golden, "eggroll_r4_sgd_grad", "w").values;
        assert_close("noise of the file's generation", &gradient(1, &device), &expected, ROUNDING);
        assert_differs("noise of generation 0", &gradient(0, &device), &expected, ROUNDING);
    }
}

/// The one deviation from the reference that is meant: under AdamW it decays the parameters that it excludes, this
/// library leaves frozen parameters alone.
#[test]
fn reference_decays_what_it_excludes() {
    let golden = Golden::open("jax_updates.npz");
    let case = three_steps("eggroll_r4_adamw3", adam_w(0.01));
    for device in hosts() {
        let found = case.train(&golden, golden.values("fitness"), GradientScale::SqrtPopulation, &device);
        for path in ["e", "x"] {
            let old = parameter(&golden, "p", path).values;
            let decayed = parameter(&golden, "eggroll_r4_adamw3_new", path).values;
            let factor = (1.0 - golden.scalar("lr") * 0.01).powi(3);
            let by_hand: Vec<f64> = old.iter().map(|value| factor * value).collect();
            assert_close(path, &by_hand, &decayed, ROUNDING);
            assert_eq!(found.parameters[path], old, "{path}");
            assert_differs(path, &found.parameters[path], &decayed, ROUNDING);
        }
    }
}
