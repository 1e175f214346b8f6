//! A pendulum to swing up: Pendulum-v1.

use super::number::{Number, wrapped};
use super::physics::{Physics, Step};
use crate::{ActionSpace, EpisodeKey};
use std::f32::consts::PI;

/// Seconds of a step.
const STEP: f32 = 0.05;
const TORQUE: f32 = 2.0;
const SPEED: f32 = 8.0;
/// `3/2·g/l` of a step, with `g = 10` and `l = 1`.
const FALL: f32 = 1.5 * 10.0 * STEP;
/// `3/(m·l²)` of a step, with `m = 1`.
const PUSH: f32 = 3.0 * STEP;
/// The cost of squared speed and torque, added to that of the angle.
const SPEED_COST: f32 = 0.1;
const TORQUE_COST: f32 = 0.001;

/// A pendulum is to be swung up and held upright by a torque between −2 and 2: Pendulum-v1.
///
/// The state is `θ, θ̇`, with `θ = 0` upright and not brought back into one turn; the observation `cos θ, sin θ, θ̇`. With the torque `u`,
/// clamped,
///
/// ```text
/// θ̇' = clamp(θ̇ + (15·sin θ + 3·u)·0.05, −8, 8)
/// θ' = θ + θ̇'·0.05
/// reward = −(wrap(θ)² + 0.1·θ̇² + 0.001·u²)
/// ```
///
/// where `wrap` takes whole turns away, into `[−π, π]`. Episodes end after 200 steps only.
///
/// # Example
///
/// ```
/// use eggroll_rl::{Pendulum, TensorEnvironment};
///
/// let mut state = [0.0, 0.0]; // upright and at rest
/// assert_eq!(Pendulum::new().step_host(&mut state, &[0.0]).reward, 0.0);
/// assert_eq!(state, [0.0, 0.0]);
/// ```
///
/// # References
///
/// Towers et al., "Gymnasium", arXiv 2407.17032.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pendulum;

impl Pendulum {
    /// Pendulum-v1.
    pub fn new() -> Self {
        Self
    }
}

impl Physics for Pendulum {
    type State<N: Number> = [N; 2];
    type Seen<N: Number> = [N; 3];
    const NAME: &'static str = "Pendulum-v1";
    const ACTIONS: ActionSpace = ActionSpace::Continuous { size: 1, low: -TORQUE, high: TORQUE };
    const TIME_LIMIT: usize = 200;
    /// Gymnasium states no threshold: a mean return of −200 takes a swing up from every start and a hold to the end.
    const SOLVED_AT: Option<f32> = Some(-200.0);

    fn start(key: EpisodeKey) -> [f32; 2] {
        [key.uniform_in(-PI, PI, 0, 0), key.uniform_in(-1.0, 1.0, 0, 1)]
    }

    fn observation<N: Number>([angle, speed]: [N; 2]) -> [N; 3] {
        [angle.clone().cos(), angle.sin(), speed]
    }

    #[inline]
    fn transition<N: Number>([angle, speed]: [N; 2], torque: N) -> Step<N, [N; 2]> {
        let torque = torque.clamp(-TORQUE, TORQUE);
        let lean = wrapped(angle.clone());
        let cost = lean.clone() * lean
            + speed.clone() * speed.clone() * SPEED_COST
            + torque.clone() * torque.clone() * TORQUE_COST;
        let speed = (speed + (angle.clone().sin() * FALL + torque * PUSH)).clamp(-SPEED, SPEED);
        Step { state: [angle + speed.clone() * STEP, speed], reward: cost * -1.0, ended: None }
    }
}
