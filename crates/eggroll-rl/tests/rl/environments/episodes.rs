//! Batches of episodes against episodes that are stepped one by one on the host.

use super::support::{Environment, devices, keys, matrix, random_actions, values};
use eggroll_rl::{CartPole, EndOfEpisode, EpisodeKey, Episodes, Memory, MountainCar, TensorEnvironment};

const ENVIRONMENTS: usize = 33;

/// The result of one environment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Expected {
    state: Vec<f32>,
    returned: f32,
    length: f32,
    ended: f32,
}

/// One environment on the host after steps with given actions: frozen at its end, or reset.
fn on_the_host(environment: &dyn TensorEnvironment, key: EpisodeKey, actions: &[f32], end: EndOfEpisode) -> Expected {
    let mut state = vec![0.0; environment.state_size()];
    environment.reset_host(key, &mut state);
    let mut found = Expected { state, ..Expected::default() };
    for (action, step) in actions.iter().zip(1..) {
        let transition = environment.step_host(&mut found.state, &[*action]);
        found.returned += transition.reward;
        found.length += 1.0;
        if transition.terminated || found.length as usize == environment.time_limit() {
            found.ended += 1.0;
            match end {
                EndOfEpisode::Freeze => return found,
                EndOfEpisode::Reset => {
                    environment.reset_host(key.restarted(step), &mut found.state);
                    found.length = 0.0;
                }
            }
        }
    }
    found
}

fn rows(environment: &dyn TensorEnvironment, episodes: &Episodes) -> Vec<Expected> {
    let state = values(episodes.state());
    let states = state.chunks_exact(environment.state_size()).map(<[f32]>::to_vec);
    let numbers = values(episodes.returns()).into_iter().zip(values(episodes.lengths())).zip(values(episodes.ended()));
    states
        .zip(numbers)
        .map(|(state, ((returned, length), ended))| Expected { state, returned, length, ended })
        .collect()
}

/// An environment that ends early, one that only time ends, and one that ends both ways.
fn environments() -> [(Environment, usize); 3] {
    [(Box::new(CartPole::new()), 200), (Box::new(MountainCar::new()), 220), (Box::new(Memory::new(3, 4)), 12)]
}

#[test]
fn batches_equal_single_environments() {
    for (environment, steps) in environments() {
        let environment = environment.as_ref();
        for end in [EndOfEpisode::Freeze, EndOfEpisode::Reset] {
            for (device, _) in devices().into_iter().filter(|(_, tolerance)| *tolerance == 0.0) {
                let keys = keys(ENVIRONMENTS as u32);
                let mut episodes = Episodes::new(environment, keys.clone(), end, &device);
                let mut actions = vec![vec![]; ENVIRONMENTS];
                for step in 0..steps {
                    let now = random_actions(environment, ENVIRONMENTS, step as u32);
                    episodes.step(environment, matrix(&now, ENVIRONMENTS, &device));
                    actions.iter_mut().zip(now).for_each(|(actions, action)| actions.push(action));
                    if step % 7 == 0 || step + 1 == steps {
                        let each = |(key, actions): (&_, &Vec<f32>)| on_the_host(environment, *key, actions, end);
                        let expected: Vec<Expected> = keys.iter().zip(&actions).map(each).collect();
                        assert_eq!(rows(environment, &episodes), expected, "{}, {end:?}", environment.name());
                        let live = expected.iter().any(|row| end == EndOfEpisode::Reset || row.ended == 0.0);
                        assert_eq!(episodes.any_live(), live, "{}, {end:?}, step {step}", environment.name());
                    }
                }
                let found = rows(environment, &episodes);
                assert!(found.iter().all(|row| row.ended >= 1.0), "{}: too few steps", environment.name());
                // Canary: the other end of episodes is told apart.
                let other = match end {
                    EndOfEpisode::Freeze => EndOfEpisode::Reset,
                    EndOfEpisode::Reset => EndOfEpisode::Freeze,
                };
                for ((key, actions), found) in keys.iter().zip(&actions).zip(&found) {
                    assert_ne!(&on_the_host(environment, *key, actions, other), found, "{end:?} is {other:?}");
                }
            }
        }
    }
}

/// On every device: what does not depend on a sine.
#[test]
fn time_limits_and_live_flags() {
    let environment = Memory::new(2, 3);
    for (device, _) in devices() {
        let actions = || matrix(&[0.0, 1.0], 2, &device);
        let mut frozen = Episodes::new(&environment, keys(2), EndOfEpisode::Freeze, &device);
        let mut reset = Episodes::new(&environment, keys(2), EndOfEpisode::Reset, &device);
        for step in 0..8 {
            assert_eq!(values(frozen.live()), [if step < 4 { 1.0 } else { 0.0 }; 2], "step {step}");
            assert_eq!(values(frozen.lengths()), [step.min(4) as f32; 2], "step {step}");
            assert_eq!(values(reset.live()), [1.0; 2], "step {step}");
            assert_eq!(values(reset.lengths()), [(step % 4) as f32; 2], "step {step}");
            assert_eq!(values(reset.ended()), [(step / 4) as f32; 2], "step {step}");
            assert_eq!(frozen.observe(&environment).dims(), [2, 3]);
            frozen.step(&environment, actions());
            reset.step(&environment, actions());
        }
        assert!(!frozen.any_live() && reset.any_live());
    }
}

#[test]
#[should_panic(expected = "MountainCar-v0: states of shape [2, 2] and actions of shape [2, 2]")]
fn actions_that_do_not_fit_panic_with_both_shapes() {
    let (environment, device) = (MountainCar::new(), devices().remove(0).0);
    let mut episodes = Episodes::new(&environment, keys(2), EndOfEpisode::Freeze, &device);
    episodes.step(&environment, matrix(&[0.0; 4], 2, &device));
}
