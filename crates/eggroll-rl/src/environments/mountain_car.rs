//! A car too weak for the hill: MountainCar-v0.

use super::hill;
use super::states::check;
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;

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
        check(self, &state, &actions);
        let (state, terminated) = hill::drive(&state, (actions - 1.0) * FORCE, GOAL);
        let reward = Tensor::full([state.dims()[0]], -1.0, &state.device());
        Transition { state, reward, terminated }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        hill::reset(key, state);
    }

    #[inline]
    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.copy_from_slice(state);
    }

    #[inline]
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        let terminated = hill::drive_host(state, (action[0] - 1.0) * FORCE, GOAL);
        HostTransition { reward: -1.0, terminated }
    }
}
