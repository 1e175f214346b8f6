//! Observations that are far from 0 and vary little: a normalizer knows their deviation from the first generation on.

use burn::optim::SgdConfig;
use burn::tensor::{Bool, Device, Tensor};
use burn_rl::{Environment, StepResult};
use eggroll_core::EggrollConfig;
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_rl::*;
use eggroll_train::{EvolutionStrategyConfig, Population};
use std::panic::{AssertUnwindSafe, catch_unwind};

const OFFSETS: [f32; 6] = [0.0, 1e3, -1e4, 101_325.0, 1e6, -1e6];
const MEMBERS: usize = 16;
const STEPS: usize = 200;
/// The golden angle: sines of its multiples are spread evenly.
const ANGLE: f32 = 2.399_963;

/// A gauge that shows `offset + 0.85·sin φ`, of deviation 0.6, and `φ/100`.
#[derive(Clone, Copy)]
struct Gauge {
    offset: f32,
}

impl TensorEnvironment for Gauge {
    fn name(&self) -> &'static str {
        "Gauge"
    }

    fn state_size(&self) -> usize {
        1
    }

    fn observation_size(&self) -> usize {
        2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Discrete(2)
    }

    fn time_limit(&self) -> usize {
        STEPS
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        Tensor::cat(vec![state.clone().sin() * 0.85 + self.offset, state * 0.01], 1)
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let terminated: Tensor<1, Bool> = actions.clone().squeeze_dim::<1>(1).greater_elem(9.0);
        Transition { state: state + ANGLE, reward: actions.squeeze_dim(1), terminated }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        state[0] = key.uniform_in(0.0, 6.0, 0, 0);
    }

    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.copy_from_slice(&[state[0].sin() * 0.85 + self.offset, state[0] * 0.01]);
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        state[0] += ANGLE;
        HostTransition { reward: action[0], terminated: false }
    }
}

/// The same, in an environment of burn-rl.
struct Dial(f32);

impl Environment for Dial {
    type State = f32;
    type Action = f32;
    const MAX_STEPS: usize = STEPS;

    fn state(&self) -> f32 {
        self.0
    }

    fn step(&mut self, action: f32) -> StepResult<f32> {
        self.0 += ANGLE;
        StepResult { next_state: self.0, reward: action.into(), done: false, truncated: false }
    }

    fn reset(&mut self) {
        self.0 = 0.0;
    }
}

impl HostTask for Gauge {
    type Environment = Dial;

    fn observation_size(&self) -> usize {
        2
    }

    fn begin(&self, key: EpisodeKey) -> Dial {
        let mut state = [0.0];
        self.reset_host(key, &mut state);
        Dial(state[0])
    }

    fn observe(&self, state: &f32, observation: &mut [f32]) {
        self.observe_host(&[*state], observation);
    }

    fn act(&self, outputs: &[f32]) -> f32 {
        outputs[0].tanh()
    }
}

/// Mean and deviation of all that is shown in the episodes of some generations.
fn truth(gauge: Gauge, generations: u32) -> [f64; 2] {
    let mut shown = Vec::new();
    for (generation, episode) in (0..generations).flat_map(|generation| [(generation, 0), (generation, 1)]) {
        let mut state = [0.0];
        gauge.reset_host(EpisodeKey::new(0, generation, episode), &mut state);
        for _ in 0..STEPS {
            let mut observation = [0.0; 2];
            gauge.observe_host(&state, &mut observation);
            shown.push(f64::from(observation[0]));
            state[0] += ANGLE;
        }
    }
    let mean = shown.iter().sum::<f64>() / shown.len() as f64;
    let variance = shown.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / shown.len() as f64;
    [mean, variance.sqrt()]
}

fn policy() -> Mlp {
    MlpConfig::new(vec![2, 4, 2]).init(&Device::flex())
}

/// The statistics after each of three generations.
fn statistics(
    mut evaluate: impl FnMut(&Population, &Mlp) -> (RolloutResult, ObservationNormalizer),
    chunk: usize,
) -> Vec<ObservationNormalizer> {
    let mut policy = policy();
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(MEMBERS);
    let mut strategy = config.with_chunk_size(chunk).try_init(&policy).expect("a strategy");
    let generation = |_| {
        let population = strategy.ask();
        let (outcome, normalizer) = evaluate(&population, &policy);
        strategy.tell(&mut policy, population, outcome.fitness).expect("a generation");
        normalizer
    };
    (0..3).map(generation).collect()
}

fn of<E, C: Runner<E>>(mut rollouts: Rollouts<E, C>, chunk: usize) -> Vec<ObservationNormalizer> {
    let evaluate = |population: &Population, policy: &Mlp| {
        let outcome = rollouts.evaluate(population, policy);
        rollouts.update_normalizer(&outcome.episodes);
        (outcome, rollouts.normalizer().expect("normalized").clone())
    };
    statistics(evaluate, chunk)
}

#[test]
fn deviations_are_those_of_the_observations() {
    for offset in OFFSETS {
        let gauge = Gauge { offset };
        let config = RolloutConfig::new().with_episodes(2).with_normalize_observations(true);
        let fused = of(config.init(gauge).expect("valid"), MEMBERS);
        for chunk in [2, MEMBERS] {
            let tensors = of(config.clone().with_fused(false).init(gauge).expect("valid"), chunk);
            assert!(tensors == fused, "{offset}, chunks of {chunk}: {tensors:?} {fused:?}");
        }
        let host = HostRolloutConfig::new().with_episodes(2).with_normalize_observations(true);
        let host = of(host.init(gauge).expect("valid"), 4);
        for (path, found) in [("fused", fused), ("host", host)] {
            for (generation, normalizer) in (1..).zip(found) {
                let [mean, deviation] = truth(gauge, generation);
                let (found, ratio) = (normalizer.mean()[0], normalizer.variance()[0].sqrt() / deviation);
                assert!((found - mean).abs() < 0.005, "{path}, {offset}: {generation}: mean {found}, not {mean}");
                assert!((ratio - 1.0).abs() < 0.005, "{path}, {offset}: {generation}: deviation {ratio} of what it is");
            }
        }
    }
}

/// A first observation that is broken, in one of its values or in one episode, is not what others are compared with.
#[test]
fn a_broken_first_observation_is_no_measure() {
    #[derive(Clone, Copy)]
    struct Late(Gauge, bool);

    impl HostTask for Late {
        type Environment = Dial;

        fn observation_size(&self) -> usize {
            2
        }

        fn begin(&self, key: EpisodeKey) -> Dial {
            let first = key == EpisodeKey::new(0, 0, 0);
            Dial(if first || self.1 { 0.0 } else { 1.0 })
        }

        fn observe(&self, state: &f32, observation: &mut [f32]) {
            self.0.observe_host(&[*state], observation);
            if *state == 0.0 {
                observation[1] = f32::NAN;
            }
        }

        fn act(&self, outputs: &[f32]) -> f32 {
            outputs[0]
        }
    }

    for all in [false, true] {
        let config = HostRolloutConfig::new().with_episodes(2).with_normalize_observations(true);
        let found = of(config.init(Late(Gauge { offset: 101_325.0 }, all)).expect("valid"), MEMBERS);
        let deviation = found[0].variance()[0].sqrt();
        assert!((deviation / 0.601 - 1.0).abs() < 0.02, "{all}: {deviation}");
        assert!(found[0].left_out() > 0);
    }
}

#[test]
fn statistics_of_others_are_refused() {
    let config = |normalize| RolloutConfig::new().with_normalize_observations(normalize);
    let gauge = Gauge { offset: 0.0 };
    let evaluated = |normalize| {
        let rollouts = config(normalize).init(gauge).expect("valid");
        rollouts.evaluate_model(&policy(), &EvaluationConfig::new(2), &Device::flex())
    };
    let mut rollouts = config(true).init(gauge).expect("valid");
    let update = || rollouts.update_normalizer(&evaluated(false));
    let panic = catch_unwind(AssertUnwindSafe(update)).expect_err("refused");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("statistics of 0 observed values, and observations here have 2"), "{text}");

    rollouts.update_normalizer(&evaluated(true));
    let saved = serde_json::to_value(rollouts.normalizer().expect("normalized")).expect("writes");
    let with = |squares: f64| {
        let mut saved = saved.clone();
        saved["squares"][0] = squares.into();
        config(true).init(gauge).expect("valid").with_normalizer(serde_json::from_value(saved).expect("reads"))
    };
    assert!(matches!(with(-3.0), Err(RolloutError::NormalizerNumbers(_))), "a sum of squares is not negative");
    let rounded = with(-1e-9).expect("but for roundings");
    assert!(rounded.normalizer().expect("normalized").variance()[0] > 0.0);
}
