//! Observations that are no numbers, or too large: left out of a normalizer's statistics, and counted.

use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, counters};
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_rl::*;
use eggroll_train::{EvolutionStrategyConfig, Population};

const MEMBERS: usize = 8;

/// CartPole with a sensor that shows something else wherever the cart is left of the middle.
#[derive(Clone, Copy)]
struct Faulty {
    cart: CartPole,
    shown: f32,
}

impl TensorEnvironment for Faulty {
    fn name(&self) -> &'static str {
        "Faulty"
    }

    fn state_size(&self) -> usize {
        self.cart.state_size()
    }

    fn observation_size(&self) -> usize {
        self.cart.observation_size()
    }

    fn actions(&self) -> ActionSpace {
        self.cart.actions()
    }

    fn time_limit(&self) -> usize {
        12
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        let place = state.clone().slice_dim(1, 0..1);
        let shown = place.clone().mask_fill(place.lower_elem(0.0), self.shown);
        Tensor::cat(vec![shown, state.slice_dim(1, 1..4)], 1)
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        self.cart.step(state, actions)
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        self.cart.reset_host(key, state);
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        self.cart.observe_host(state, observation);
        if state[0] < 0.0 {
            observation[0] = self.shown;
        }
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        self.cart.step_host(state, action)
    }
}

fn population(policy: &Mlp) -> Population {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(MEMBERS);
    config.try_init(policy).expect("a strategy").ask()
}

fn policy() -> Mlp {
    MlpConfig::new(vec![4, 5, 2]).init(&Device::flex())
}

fn run(policy: &Mlp, shown: f32, fused: bool) -> (RolloutResult, ObservationNormalizer) {
    let config = RolloutConfig::new().with_normalize_observations(true).with_episodes(16).with_fused(fused);
    let mut rollouts = config.init(Faulty { cart: CartPole::new(), shown }).expect("valid");
    let outcome = rollouts.evaluate(&population(policy), policy);
    rollouts.update_normalizer(&outcome.episodes);
    let normalizer = rollouts.normalizer().expect("normalized").clone();
    (outcome, normalizer)
}

#[test]
fn such_observations_are_left_out_and_counted() {
    let policy = policy();
    for shown in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e16] {
        for fused in [true, false] {
            let (outcome, normalizer) = run(&policy, shown, fused);
            let (steps, left_out) = (outcome.episodes.env_steps(), outcome.episodes.left_out());
            assert!(0 < left_out && left_out < steps, "{shown}: {left_out} of {steps}");
            assert_eq!((normalizer.left_out(), normalizer.count()), (left_out, (steps - left_out) as f64), "{shown}");
            // What is left is right of the middle.
            assert!(normalizer.mean()[0] > 0.0 && normalizer.mean()[0] < 0.5, "{shown}: {:?}", normalizer.mean());
            assert!(normalizer.variance().iter().all(|variance| *variance > 0.0 && *variance < 10.0), "{shown}");
            assert!(outcome.fitness.values().iter().all(|fitness| fitness.is_finite()));
        }
    }
    // Canary: what is near enough counts.
    let (outcome, normalizer) = run(&policy, -1e3, true);
    assert_eq!((outcome.episodes.left_out(), normalizer.count()), (0, outcome.episodes.env_steps() as f64));
    assert!(normalizer.mean()[0] < -1.0);
}

#[test]
fn fused_rollouts_leave_out_what_tensors_do() {
    let policy = policy();
    assert_eq!(run(&policy, 1e16, true), run(&policy, 1e16, false));
}

/// The count travels with the returns: no read to the host is added.
#[test]
fn counting_reads_nothing() {
    let policy = policy();
    let reads = |normalize: bool, shown: f32| {
        let config = RolloutConfig::new().with_normalize_observations(normalize).with_fused(false);
        let rollouts = config.init(Faulty { cart: CartPole::new(), shown }).expect("valid");
        let population = population(&policy);
        let before = counters::snapshot();
        rollouts.evaluate(&population, &policy);
        (counters::snapshot() - before).host_reads
    };
    assert_eq!([reads(true, f32::NAN), reads(true, 0.5)], [reads(false, 0.5); 2]);
}

#[test]
fn statistics_that_were_saved_without_a_count_are_read() {
    let (_, normalizer) = run(&policy(), 1.0, true);
    let mut json = serde_json::to_value(&normalizer).expect("writes");
    json.as_object_mut().expect("an object").remove("left_out");
    assert_eq!(serde_json::from_value::<ObservationNormalizer>(json).expect("reads"), normalizer);
}

#[test]
fn counts_that_no_memory_holds_are_refused() {
    let message = |config: RolloutConfig| config.init(CartPole::new()).expect_err("refused").to_string();
    let huge = usize::MAX;
    assert_eq!(
        message(RolloutConfig::new().with_episodes(huge)),
        format!("rollouts: episodes must be at most 1048576, not {huge}")
    );
    let limit = CartPole::new().time_limit();
    assert_eq!(
        message(RolloutConfig::new().with_action_repeat(huge)),
        format!("rollouts: action_repeat must be at most {limit}, not {huge}")
    );
    assert!(RolloutConfig::new().with_action_repeat(limit).with_check_every(huge).init(CartPole::new()).is_ok());
}

#[test]
#[should_panic(expected = "episodes must be at most 1048576, not 18446744073709551615")]
fn evaluations_of_more_episodes_than_memory_holds_panic() {
    let rollouts = RolloutConfig::new().init(CartPole::new()).expect("valid");
    rollouts.evaluate_model(&policy(), &EvaluationConfig::new(usize::MAX), &Device::flex());
}
