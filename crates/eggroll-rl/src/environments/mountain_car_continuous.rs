//! A car too weak for the hill, with a throttle: MountainCarContinuous-v0.

use super::hill;
use super::number::{Flag, Number};
use super::physics::{self, Physics, Step};
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;
use eggroll_core::device_rollout::Dynamics;

const POWER: f32 = 0.0015;
const GOAL: f32 = 0.45;
const ARRIVAL: f32 = 100.0;
const ACTION_COST: f32 = 0.1;

/// The valley of [`MountainCar`](crate::MountainCar) with a force between −1 and 1: MountainCarContinuous-v0.
///
/// The push is `0.0015·clamp(a, −1, 1)` in place of `0.001·(a − 1)`. A step costs `0.1·a²`, of the action as it was given; the step on which
/// `x ≥ 0.45` and `v ≥ 0` is worth 100 more and the last. Otherwise episodes end after 999.
///
/// # Example
///
/// ```
/// use eggroll_rl::{MountainCarContinuous, TensorEnvironment};
///
/// let mut state = [0.44, 0.05];
/// let transition = MountainCarContinuous::new().step_host(&mut state, &[0.0]);
/// assert_eq!((transition.reward, transition.terminated), (100.0, true));
/// ```
///
/// # References
///
/// Towers et al., "Gymnasium", arXiv 2407.17032.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountainCarContinuous;

impl MountainCarContinuous {
    /// MountainCarContinuous-v0.
    pub fn new() -> Self {
        Self
    }
}

impl Physics<2, 2> for MountainCarContinuous {
    fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
        state
    }

    #[inline]
    fn transition<N: Number>(state: [N; 2], action: N) -> Step<N, 2> {
        let (state, arrived) = hill::drive(state, action.clone().clamp(-1.0, 1.0) * POWER, GOAL);
        let reward = arrived.clone().number() * ARRIVAL - action.clone() * action * ACTION_COST;
        Step { state, reward, ended: Some(arrived) }
    }
}

impl TensorEnvironment for MountainCarContinuous {
    fn name(&self) -> &'static str {
        "MountainCarContinuous-v0"
    }

    fn state_size(&self) -> usize {
        2
    }

    fn observation_size(&self) -> usize {
        2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Continuous { size: 1, low: -1.0, high: 1.0 }
    }

    fn time_limit(&self) -> usize {
        999
    }

    fn solved_at(&self) -> Option<f32> {
        Some(90.0)
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        state
    }

    #[track_caller]
    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        physics::step(self, state, actions)
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        hill::reset(key, state);
    }

    #[inline]
    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        physics::observe_host::<Self, 2, 2>(state, observation);
    }

    #[inline]
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        physics::step_host::<Self, 2, 2>(state, action)
    }

    fn dynamics(&self) -> Option<Dynamics> {
        physics::dynamics::<Self, 2, 2>()
    }
}
