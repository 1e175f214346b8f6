//! A car too weak for the hill, with a throttle: MountainCarContinuous-v0.

use super::hill;
use super::number::{Flag, Number};
use super::physics::{Physics, Step};
use crate::{ActionSpace, EpisodeKey};

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

impl Physics for MountainCarContinuous {
    type State<N: Number> = [N; 2];
    type Seen<N: Number> = [N; 2];
    const NAME: &'static str = "MountainCarContinuous-v0";
    const ACTIONS: ActionSpace = ActionSpace::Continuous { size: 1, low: -1.0, high: 1.0 };
    const TIME_LIMIT: usize = 999;
    const SOLVED_AT: Option<f32> = Some(90.0);
    const SEES_STATE: bool = true;

    fn start(key: EpisodeKey) -> [f32; 2] {
        hill::start(key)
    }

    fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
        state
    }

    #[inline]
    fn transition<N: Number>(state: [N; 2], action: N) -> Step<N, [N; 2]> {
        let (state, arrived) = hill::drive(state, action.clone().clamp(-1.0, 1.0) * POWER, GOAL);
        let reward = arrived.clone().number() * ARRIVAL - action.clone() * action * ACTION_COST;
        Step { state, reward, ended: Some(arrived) }
    }
}
