//! Episodes recorded by Gymnasium (`data/gymnasium/`), in both forms: steps from every recorded state, and whole episodes from the
//! first.

use super::support::{Environment, Stepped, classic, devices, step_host, step_tensor};
use burn::tensor::Device;
use eggroll_rl::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum, TensorEnvironment};
use serde_json::Value;
use std::f64::consts::PI;

/// Largest difference of a step, of float32 arithmetic from the recorded float64, relative to 1 and the value: ten roundings. Worst seen:
/// 2.6e-7 of a state, 4.2e-7 of a reward.
const STEP: f64 = 1e-6;
/// The same after up to 120 steps, in which differences grow. Worst seen: 1.3e-5, of Pendulum.
const EPISODE: f64 = 1e-4;
/// How many tolerances a canary must be off.
const CANARY: f64 = 10.0;

/// A recorded episode; states and observations have one entry more than there are steps.
struct Episode {
    states: Vec<Vec<f64>>,
    observations: Vec<Vec<f64>>,
    actions: Vec<Vec<f32>>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().map(|value| value.as_f64().expect("a number")).collect(),
        value => vec![value.as_f64().expect("a number")],
    }
}

impl Episode {
    fn read(episode: &Value) -> Self {
        let list = |name: &str| episode[name].as_array().expect("a list");
        let rows = |first: &str, rest: &str| std::iter::once(&episode[first]).chain(list(rest)).map(numbers).collect();
        Self {
            states: rows("state0", "state"),
            observations: rows("obs0", "obs"),
            actions: list("action").iter().map(|action| floats(&numbers(action))).collect(),
            rewards: list("reward").iter().flat_map(numbers).collect(),
            terminated: list("terminated").iter().map(|end| end.as_bool().expect("a boolean")).collect(),
        }
    }
}

fn recorded() -> Vec<(Environment, Vec<Episode>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/gymnasium/trajectories.json");
    let file: Value = serde_json::from_reader(std::fs::File::open(path).expect("a file")).expect("JSON");
    let of = |(environment, _): (Environment, _)| {
        let episodes = file[environment.name()]["episodes"].as_array().expect("a list");
        (environment, episodes.iter().map(Episode::read).collect())
    };
    classic().into_iter().map(of).collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// One form of all environments.
struct EnvironmentForm {
    name: String,
    device: Option<Device>,
    /// Beside that of float32.
    tolerance: f64,
}

impl EnvironmentForm {
    fn all() -> Vec<Self> {
        let tensor = |(device, tolerance)| Self { name: format!("{device:?}"), device: Some(device), tolerance };
        let host = Self { name: "host".into(), device: None, tolerance: 0.0 };
        std::iter::once(host).chain(devices().into_iter().map(tensor)).collect()
    }

    fn step(&self, environment: &dyn TensorEnvironment, state: &[f32], actions: &[f32]) -> Stepped {
        match &self.device {
            None => step_host(environment, state, actions),
            Some(device) => step_tensor(environment, state, actions, device),
        }
    }
}

/// Largest difference, relative to 1 and the value; of an Acrobot's angles without whole turns.
fn distance(environment: &dyn TensorEnvironment, found: &[f32], expected: &[f64]) -> f64 {
    assert!(!expected.is_empty() && found.len() == expected.len(), "{} and {} values", found.len(), expected.len());
    let turns = environment.name() == "Acrobot-v1" && expected.len() == 4;
    let difference = |(i, (found, expected)): (usize, (&f32, &f64))| {
        let difference = (f64::from(*found) - expected).abs();
        let difference = if turns && i < 2 { difference.min((difference - 2.0 * PI).abs()) } else { difference };
        if difference.is_nan() { f64::INFINITY } else { difference / (1.0 + expected.abs()) }
    };
    found.iter().zip(expected).enumerate().map(difference).fold(0.0, f64::max)
}

/// The same of everything that follows step `step` of an episode; ends are exact.
fn compare(environment: &dyn TensorEnvironment, found: &Stepped, episode: &Episode, step: usize) -> f64 {
    assert_eq!(found.terminated, [episode.terminated[step]], "{}: end at step {step}", environment.name());
    [
        distance(environment, &found.state, &episode.states[step + 1]),
        distance(environment, &found.observation, &episode.observations[step + 1]),
        distance(environment, &found.reward, &[episode.rewards[step]]),
    ]
    .into_iter()
    .fold(0.0, f64::max)
}

#[test]
fn steps_from_recorded_states() {
    for (environment, episodes) in recorded() {
        let environment = environment.as_ref();
        for form in EnvironmentForm::all() {
            let tolerance = STEP + form.tolerance;
            let (mut worst, mut canary) = (0.0_f64, 0.0_f64);
            for (index, episode) in episodes.iter().enumerate() {
                let other = &episodes[(index + 1) % episodes.len()];
                for (step, action) in episode.actions.iter().enumerate() {
                    let found = form.step(environment, &floats(&episode.states[step]), action);
                    worst = worst.max(compare(environment, &found, episode, step));
                    canary = canary.max(distance(environment, &found.state, &other.states[0]));
                }
            }
            let what = format!("{} on {}", environment.name(), form.name);
            println!("{what}: {worst:.1e}");
            assert!(worst <= tolerance, "{what}: {worst:e}");
            assert!(canary > CANARY * tolerance, "{what}: another episode is only {canary:e} off");
        }
    }
}

#[test]
fn whole_episodes() {
    for (environment, episodes) in recorded() {
        let environment = environment.as_ref();
        // Where sines differ, differences of chaotic tasks outgrow any tolerance: single steps have to do.
        for form in EnvironmentForm::all().iter().filter(|form| form.tolerance <= STEP) {
            let (mut worst, mut canary) = (0.0_f64, f64::INFINITY);
            for (index, episode) in episodes.iter().enumerate() {
                let other = &episodes[(index + 1) % episodes.len()];
                let mut state = floats(&episode.states[0]);
                for (step, action) in episode.actions.iter().enumerate() {
                    let found = form.step(environment, &state, action);
                    worst = worst.max(compare(environment, &found, episode, step));
                    state = found.state;
                }
                let end = episode.actions.len().min(other.actions.len());
                let far = distance(environment, &floats(&other.states[end]), &episode.states[end]);
                canary = canary.min(far);
            }
            let what = format!("{} on {}", environment.name(), form.name);
            println!("{what}: {worst:.1e}");
            assert!(worst <= EPISODE, "{what}: {worst:e}");
            assert!(canary > CANARY * EPISODE, "{what}: another episode is only {canary:e} off");
        }
    }
}

#[test]
fn first_observations() {
    for (environment, episodes) in recorded() {
        for episode in episodes {
            let mut observation = vec![0.0; environment.observation_size()];
            environment.observe_host(&floats(&episode.states[0]), &mut observation);
            assert!(distance(environment.as_ref(), &observation, &episode.observations[0]) <= STEP);
        }
    }
}

/// What the recorded episodes do not reach: bounds, walls and goals.
#[test]
fn edges() {
    /// State, action; state, reward and end after it.
    type Edge = (Environment, Vec<f32>, f32, Vec<f32>, f32, bool);
    let edges: [Edge; 11] = [
        // Into the wall, and away from it.
        (Box::new(MountainCar::new()), vec![-1.19, -0.07], 0.0, vec![-1.2, 0.0], -1.0, false),
        (Box::new(MountainCarContinuous::new()), vec![-1.19, -0.07], -1.0, vec![-1.2, 0.0], -0.1, false),
        // Arrival, and the bound behind it.
        (Box::new(MountainCar::new()), vec![0.45, 0.07], 1.0, vec![0.519_452_5, 0.069_452_5], -1.0, true),
        (Box::new(MountainCar::new()), vec![0.6, 0.07], 2.0, vec![0.6, 0.07], -1.0, true),
        (Box::new(MountainCarContinuous::new()), vec![0.44, 0.06], -3.0, vec![0.497_879_3, 0.057_879_3], 99.1, true),
        // Behind the goal, but rolling back.
        (Box::new(MountainCar::new()), vec![0.55, -0.02], 2.0, vec![0.531_197_5, -0.018_802_5], -1.0, false),
        // Torque and speed clamped.
        (Box::new(Pendulum::new()), vec![0.0, 7.9], 5.0, vec![0.4, 8.0], -6.245, false),
        (Box::new(Pendulum::new()), vec![2.0 * PI as f32, 0.0], -9.0, vec![6.268_185, -0.3], -0.004, false),
        // Out of the track, and a pole that leans too far.
        (
            Box::new(CartPole::new()),
            vec![-2.39, -1.0, 0.0, 0.0],
            1.0,
            vec![-2.41, -0.804_88, 0.0, -0.292_68],
            1.0,
            true,
        ),
        (Box::new(CartPole::new()), vec![0.0, 0.0, 0.2, 1.0], 0.0, vec![0.0, -0.197_15, 0.22, 1.348_24], 1.0, true),
        // Above the line: upright and at rest.
        (Box::new(Acrobot::new()), vec![PI as f32, 0.0, 0.0, 0.0], 1.0, vec![-PI as f32, 0.0, 0.0, 0.0], 0.0, true),
    ];
    for (environment, state, action, expected, reward, terminated) in edges {
        let environment = environment.as_ref();
        let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
        for form in EnvironmentForm::all() {
            let what = format!("{} on {} from {state:?}", environment.name(), form.name);
            let found = form.step(environment, &state, &[action]);
            let far = distance(environment, &found.state, &expected);
            assert!(far <= 5e-6 + form.tolerance, "{what}: {:?}, {far:e} off", found.state);
            let far = distance(environment, &found.reward, &[f64::from(reward)]);
            assert!(far <= STEP + form.tolerance, "{what}: a reward of {:?}", found.reward);
            assert_eq!(found.terminated, [terminated], "{what}");
        }
    }
}

/// As Gymnasium registers them; the pendulum has no threshold there.
#[test]
fn limits_and_thresholds_are_the_registered_ones() {
    let found: Vec<_> = classic().iter().map(|(e, _)| (e.name(), e.time_limit(), e.solved_at())).collect();
    let expected = [
        ("CartPole-v1", 500, Some(475.0)),
        ("Pendulum-v1", 200, Some(-200.0)),
        ("Acrobot-v1", 500, Some(-100.0)),
        ("MountainCar-v0", 200, Some(-110.0)),
        ("MountainCarContinuous-v0", 999, Some(90.0)),
    ];
    assert_eq!(found, expected);
}
