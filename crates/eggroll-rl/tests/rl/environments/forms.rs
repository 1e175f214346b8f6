//! Both forms of every environment compute the same: the same bits on Flex.

use super::support::{
    Stepped, all, classic, devices, keys, matrix, random_actions, recurrent, step_host, step_tensor, unit, values,
};
use eggroll_rl::{ActionSpace, TensorEnvironment};

/// Environments of a batch: more than a vector, and no multiple of one.
const ENVIRONMENTS: usize = 257;
/// Differences by an operation or two of float32, in addition to those of sines and cosines, which Acrobot takes four times in a row.
const ROUNDING: f64 = 1e-5;

fn bits(stepped: &Stepped) -> Vec<u32> {
    [&stepped.state, &stepped.observation, &stepped.reward].into_iter().flatten().map(|value| value.to_bits()).collect()
}

/// Largest difference, relative to 1 and the value.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let each = |(found, expected): (&f32, &f32)| f64::from((found - expected).abs() / (1.0 + expected.abs()));
    found.iter().zip(expected).map(each).fold(0.0, f64::max)
}

/// Another action for every environment.
fn others(actions: &[f32], environment: &dyn TensorEnvironment) -> Vec<f32> {
    let other = |action: &f32| match environment.actions() {
        ActionSpace::Discrete(count) => (action + 1.0) % count as f32,
        ActionSpace::Continuous { .. } => -action,
    };
    actions.iter().map(other).collect()
}

#[test]
fn the_same_bits_along_episodes() {
    for environment in all() {
        let environment = environment.as_ref();
        for (device, _) in devices().into_iter().filter(|(_, tolerance)| *tolerance == 0.0) {
            let mut state = values(environment.reset(&keys(ENVIRONMENTS as u32), &device));
            let mut canary = false;
            // Behind the end of many an episode, where nobody is interested but where nothing may fail.
            for step in 0..60 {
                let actions = random_actions(environment, ENVIRONMENTS, step);
                let expected = step_host(environment, &state, &actions);
                let found = step_tensor(environment, &state, &actions, &device);
                assert_eq!(bits(&found), bits(&expected), "{}, step {step}", environment.name());
                assert_eq!(found.terminated, expected.terminated, "{}, step {step}", environment.name());
                let other = step_tensor(environment, &state, &others(&actions, environment), &device);
                canary |= bits(&other) != bits(&expected);
                state = found.state;
            }
            assert!(canary, "{}: other actions change nothing", environment.name());
        }
    }
}

#[test]
fn the_same_from_anywhere() {
    for (environment, bounds) in classic() {
        let environment = environment.as_ref();
        let bound = |index: usize| bounds[index % bounds.len()];
        let count = ENVIRONMENTS * environment.state_size();
        for stream in 100..120 {
            let state: Vec<f32> = (0..count).map(|i| bound(i) * (2.0 * unit(i, stream) - 1.0)).collect();
            let actions = random_actions(environment, ENVIRONMENTS, stream);
            let expected = step_host(environment, &state, &actions);
            assert!(expected.state.iter().all(|value| value.is_finite()));
            for (device, tolerance) in devices() {
                let found = step_tensor(environment, &state, &actions, &device);
                if tolerance == 0.0 {
                    assert_eq!(bits(&found), bits(&expected), "{}", environment.name());
                    assert_eq!(found.terminated, expected.terminated, "{}", environment.name());
                    continue;
                }
                // Angles in one turn jump at its ends, so that of Acrobots only what is seen of them is compared. Ends at a bound may differ,
                // and rewards with them.
                let far = distance(&found.observation, &expected.observation);
                assert!(far <= 10.0 * (ROUNDING + tolerance), "{} on {device:?}: {far:e}", environment.name());
                let ends = found.terminated.iter().zip(&expected.terminated);
                let differing = ends.filter(|(found, expected)| found != expected).count();
                assert!(differing <= ENVIRONMENTS / 50, "{} on {device:?}: {differing} ends", environment.name());
            }
        }
    }
}

/// Programs are of the same text: the host computes the same bits with them, wherever kernels take them.
#[test]
fn programs_compute_the_same_bits() {
    for (environment, bounds) in classic() {
        let environment = environment.as_ref();
        let dynamics = environment.dynamics().expect("programs");
        let count = ENVIRONMENTS * environment.state_size();
        let mut canary = false;
        for stream in 200..210 {
            let state = |i: usize| bounds[i % bounds.len()] * (2.0 * unit(i, stream) - 1.0);
            let states: Vec<f32> = (0..count).map(state).collect();
            let actions = random_actions(environment, ENVIRONMENTS, stream);
            let expected = step_host(environment, &states, &actions);
            let (mut next, mut seen, mut rewards, mut ends) = (vec![], vec![], vec![], vec![]);
            for (state, action) in states.chunks_exact(environment.state_size()).zip(&actions) {
                let mut outputs = dynamics.transition().evaluate(&[state, &[*action]].concat());
                ends.push(outputs.pop() == Some(1.0));
                rewards.extend(outputs.pop());
                seen.extend(dynamics.observation().evaluate(&outputs));
                next.extend(outputs);
            }
            let found = Stepped { state: next, observation: seen, reward: rewards, terminated: ends };
            assert_eq!(bits(&found), bits(&expected), "{}", environment.name());
            assert_eq!(found.terminated, expected.terminated, "{}", environment.name());
            canary |= bits(&step_host(environment, &states, &others(&actions, environment))) != bits(&found);
        }
        assert!(canary, "{}: other actions change nothing", environment.name());
    }
    assert!(recurrent().iter().all(|environment| environment.dynamics().is_none()));
}

/// Tasks without sines are exact everywhere.
#[test]
fn recurrent_tasks_are_the_same_on_every_device() {
    for environment in recurrent() {
        let environment = environment.as_ref();
        for (device, _) in devices() {
            let mut state = values(environment.reset(&keys(ENVIRONMENTS as u32), &device));
            for step in 0..environment.time_limit() as u32 {
                let actions = random_actions(environment, ENVIRONMENTS, step);
                let expected = step_host(environment, &state, &actions);
                let found = step_tensor(environment, &state, &actions, &device);
                let what = format!("{} on {device:?}, step {step}", environment.name());
                // A product by a reciprocal may be the last bit off on a device.
                assert!(distance(&found.observation, &expected.observation) <= 1e-6, "{what}");
                assert_eq!((&found.state, &found.reward), (&expected.state, &expected.reward), "{what}");
                assert_eq!(found.terminated, expected.terminated, "{what}");
                state = found.state;
            }
        }
    }
}

#[test]
#[should_panic(expected = "CartPole-v1: states of shape [2, 4] and actions of shape [3, 1]")]
fn shapes_that_do_not_fit_panic_with_both() {
    let (environment, device) = (&all()[0], &devices()[0].0);
    let _ = environment.step(matrix(&[0.0; 8], 2, device), matrix(&[0.0; 3], 3, device));
}

#[test]
#[should_panic(expected = "a row of 3 floats, where 4 are due")]
fn rows_that_do_not_fit_panic_with_both() {
    let _ = all()[0].step_host(&mut [0.0; 3], &[0.0]);
}
