//! A car too weak for the hill: MountainCar-v0.

use super::hill;
use super::number::Number;
use super::physics::{Physics, Step};
use crate::{ActionSpace, EpisodeKey};

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

impl Physics for MountainCar {
    type State<N: Number> = [N; 2];
    type Seen<N: Number> = [N; 2];
    const NAME: &'static str = "MountainCar-v0";
    const ACTIONS: ActionSpace = ActionSpace::Discrete(3);
    const TIME_LIMIT: usize = 200;
    const SOLVED_AT: Option<f32> = Some(-110.0);
    const SEES_STATE: bool = true;

    fn start(key: EpisodeKey) -> [f32; 2] {
        hill::start(key)
    }

    fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
        state
    }

    #[inline]
    fn transition<N: Number>(state: [N; 2], action: N) -> Step<N, [N; 2]> {
        let (state, arrived) = hill::drive(state, (action - 1.0) * FORCE, GOAL);
        Step { reward: state[0].filled(-1.0), ended: Some(arrived), state }
    }
}
