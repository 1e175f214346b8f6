//! A car too weak for the hill: MountainCar-v0.

use super::hill;
use super::number::Number;
use super::physics::{self, Physics, Step};
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;
use eggroll_core::device_rollout::Dynamics;

const FORCE: f32 = 0.001;
const GOAL: f32 = 0.5;

/// A car in a valley, too weak to climb the hill at once, is pushed to the left (0), not at all (1) or to the right (2): MountainCar-v0.
///
/// State and observation are `x, v`:
///
/// ```text
/// v' = clamp(v + 0.001·(a − 1) − 0.0025·cos 3x, −0.07, 0.07)
/// x' = clamp(x + v', −1.2, 0.6), where −1.2 is a wall: a car that rolls into it stops
/// ```
///
/// Every step costs 1. An episode ends where `x ≥ 0.5` and `v ≥ 0`, or after 200 steps.
///
/// # Example
///
/// ```
/// use eggroll_rl::{MountainCar, TensorEnvironment};
///
/// let mut state = [-1.15, -0.07]; // rolls into the wall
/// MountainCar::new().step_host(&mut state, &[0.0]);
/// assert_eq!(state, [-1.2, 0.0]);
/// ```
///
/// # References
///
/// Moore, "Efficient memory-based learning for robot control", 1990; Towers et al., "Gymnasium", arXiv 2407.17032.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountainCar;

impl MountainCar {
    /// MountainCar-v0.
    pub fn new() -> Self {
        Self
    }
}

impl Physics<2, 2> for MountainCar {
    fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
        state
    }

    #[inline]
    fn transition<N: Number>(state: [N; 2], action: N) -> Step<N, 2> {
        let (state, arrived) = hill::drive(state, (action - 1.0) * FORCE, GOAL);
        Step { reward: state[0].filled(-1.0), ended: Some(arrived), state }
    }
}

impl TensorEnvironment for MountainCar {
    fn name(&self) -> &'static str {
        "MountainCar-v0"
    }

    fn state_size(&self) -> usize {
        2
    }

    fn observation_size(&self) -> usize {
        2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Discrete(3)
    }

    fn time_limit(&self) -> usize {
        200
    }

    fn solved_at(&self) -> Option<f32> {
        Some(-110.0)
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
