//! Steps of gymnax's environments: `envs_gymnax.npz`.

use crate::compare::{ROUNDING, assert_close, assert_differs, values};
use crate::devices;
use crate::loader::{Array, Golden};
use burn::tensor::{Device, Tensor};
use eggroll::rl::{CartPole, Pendulum, TensorEnvironment};

/// State, observation, reward and end after a step of all rows.
struct RecordedStep {
    state: Vec<f64>,
    observation: Vec<f64>,
    reward: Vec<f64>,
    terminated: Vec<f64>,
}

fn floats(array: &Array) -> Vec<f32> {
    array.values.iter().map(|value| *value as f32).collect()
}

fn on_the_host(environment: &impl TensorEnvironment, state: &Array, actions: &Array) -> RecordedStep {
    let mut found = RecordedStep { state: vec![], observation: vec![], reward: vec![], terminated: vec![] };
    let widen = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
    for (state, action) in floats(state).chunks_exact_mut(environment.state_size()).zip(floats(actions)) {
        let transition = environment.step_host(state, &[action]);
        let mut observation = vec![f32::NAN; environment.observation_size()];
        environment.observe_host(state, &mut observation);
        found.state.extend(widen(state));
        found.observation.extend(widen(&observation));
        found.reward.push(transition.reward.into());
        found.terminated.push(transition.terminated.into());
    }
    found
}

fn on(device: &Device, environment: &impl TensorEnvironment, state: &Array, actions: &Array) -> RecordedStep {
    let actions: Tensor<1> = actions.tensor(device);
    let transition = environment.step(state.tensor(device), actions.unsqueeze_dim(1));
    RecordedStep {
        observation: values(environment.observe(transition.state.clone())),
        state: values(transition.state),
        reward: values(transition.reward),
        terminated: values(transition.terminated.float()),
    }
}

/// The step in every form, with what rounding may make of it: sines and cosines of devices are as good as Vulkan asks for.
fn forms(environment: &impl TensorEnvironment, state: &Array, actions: &Array) -> Vec<(RecordedStep, f64)> {
    let tensor = |device: Device| {
        let tolerance = if format!("{device:?}").contains("Cube") { 2e-3 } else { ROUNDING };
        (on(&device, environment, state, actions), tolerance)
    };
    let host = (on_the_host(environment, state, actions), ROUNDING);
    std::iter::once(host).chain(devices().into_iter().map(tensor)).collect()
}

#[test]
fn cart_pole() {
    let golden = Golden::open("envs_gymnax.npz");
    let [state, action, next, reward, terminated] =
        ["state", "action", "next", "reward", "terminated"].map(|name| golden.array(&format!("cp_{name}")));
    let is_over = |state: &[f64]| state[0].abs() > 2.4 || state[2].abs() > 12f64.to_radians();
    for (found, tolerance) in forms(&CartPole::new(), state, action) {
        assert_close("states", &found.state, &next.values, tolerance);
        assert_close("observations", &found.observation, &next.values, tolerance);
        assert_eq!(found.terminated, terminated.values);
        // gymnax gives nothing for a step from behind the end.
        let begun = state.values.chunks_exact(4).map(|state| if is_over(state) { 0.0 } else { 1.0 });
        assert_eq!(begun.collect::<Vec<_>>(), reward.values);
        assert_eq!(found.reward, vec![1.0; reward.values.len()]);
        assert_differs("states before", &state.values, &next.values, tolerance);
    }
    let other = Array { values: action.values.iter().map(|action| 1.0 - action).collect(), ..action.clone() };
    assert_differs("the other action", &on_the_host(&CartPole::new(), state, &other).state, &next.values, ROUNDING);
}

#[test]
fn pendulum() {
    let golden = Golden::open("envs_gymnax.npz");
    let [state, action, next, observation, reward] =
        ["state", "action", "next", "obs", "reward"].map(|name| golden.array(&format!("pd_{name}")));
    for (found, tolerance) in forms(&Pendulum::new(), state, action) {
        assert_close("states", &found.state, &next.values, tolerance);
        assert_close("observations", &found.observation, &observation.values, tolerance);
        assert_close("rewards", &found.reward, &reward.values, tolerance);
        assert_eq!(found.terminated, vec![0.0; found.reward.len()]);
        assert_differs("states before", &state.values, &next.values, tolerance);
    }
    let other = Array { values: action.values.iter().map(|torque| -torque).collect(), ..action.clone() };
    let found = on_the_host(&Pendulum::new(), state, &other);
    assert_differs("the other torque", &found.state, &next.values, ROUNDING);
}
