//! A pole on a cart: CartPole-v1.

use super::number::{Flag, Number};
use super::physics::{Physics, Step};
use crate::{ActionSpace, EpisodeKey};

/// Seconds of a step.
const STEP: f32 = 0.02;
const GRAVITY: f32 = 9.8;
const CART_MASS: f32 = 1.0;
const POLE_MASS: f32 = 0.1;
/// Half the length of the pole.
const LENGTH: f32 = 0.5;
const FORCE: f32 = 10.0;

/// `F / (M + m)`
const PUSH: f32 = FORCE / (CART_MASS + POLE_MASS);
/// From action 0, which pushes to the left, to action 1.
const BOTH_WAYS: f32 = 2.0 * PUSH;
/// `m·l / (M + m)`
const POLE: f32 = POLE_MASS * LENGTH / (CART_MASS + POLE_MASS);
/// `4/3·l`
const INERTIA: f32 = 4.0 / 3.0 * LENGTH;

/// The cart must stay nearer to the middle than this.
const TRACK: f32 = 2.4;
/// The pole must lean less than this: 12 degrees.
const TILT: f32 = 12.0 * std::f32::consts::PI / 180.0;
/// Every number of a new state is between minus this and this.
const START: f32 = 0.05;

/// A pole is to be balanced on a cart that is pushed to the left (0) or to the right (1): CartPole-v1.
///
/// State and observation are `x, ẋ, θ, θ̇`. With `F = ±10`, masses `M = 1` and `m = 0.1`, half the pole's length `l = 0.5`,
///
/// ```text
/// t = (F + m·l·θ̇²·sin θ) / (M + m)
/// θ̈ = (9.8·sin θ − t·cos θ) / (l·(4/3 − m·cos² θ / (M + m)))
/// ẍ = t − m·l·θ̈·cos θ / (M + m)
/// ```
///
/// and Euler steps of 0.02 s, positions before velocities. Every step is worth 1, the last one too. An episode ends where `|x| > 2.4` or
/// `|θ|` exceeds 12 degrees, or after 500 steps.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_rl::{CartPole, EpisodeKey, TensorEnvironment};
///
/// let environment = CartPole::new();
/// let keys = [EpisodeKey::new(0, 0, 0), EpisodeKey::new(0, 0, 1)];
/// let state = environment.reset(&keys, &Device::flex());
/// let transition = environment.step(state, Tensor::from_floats([[0.0], [1.0]], &Device::flex()));
/// assert_eq!(transition.state.dims(), [2, 4]);
/// assert_eq!(transition.reward.into_data().try_to_vec::<f32>().unwrap(), [1.0, 1.0]);
/// ```
///
/// # References
///
/// - Barto, Sutton, Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems", 1983
/// - Florian, "Correct equations for the dynamics of the cart-pole system", 2007
/// - Towers et al., "Gymnasium", arXiv 2407.17032
#[derive(Clone, Copy, Debug, Default)]
pub struct CartPole;

impl CartPole {
    /// CartPole-v1.
    pub fn new() -> Self {
        Self
    }
}

/// Acceleration of the cart and of the pole.
#[inline]
fn accelerations<N: Number>(action: N, angle: N, spin: N) -> [N; 2] {
    let (sin, cos) = (angle.clone().sin(), angle.cos());
    let thrust = (action * BOTH_WAYS - PUSH) + spin.clone() * spin * sin.clone() * POLE;
    let inertia = cos.clone() * cos.clone() * -POLE + INERTIA;
    let pole = (sin * GRAVITY - cos.clone() * thrust.clone()) / inertia;
    [thrust - pole.clone() * cos * POLE, pole]
}

impl Physics for CartPole {
    type State<N: Number> = [N; 4];
    type Seen<N: Number> = [N; 4];
    const NAME: &'static str = "CartPole-v1";
    const ACTIONS: ActionSpace = ActionSpace::Discrete(2);
    const TIME_LIMIT: usize = 500;
    const SOLVED_AT: Option<f32> = Some(475.0);
    const SEES_STATE: bool = true;

    fn start(key: EpisodeKey) -> [f32; 4] {
        let mut state = [0.0; 4];
        key.fill_uniform(-START, START, &mut state);
        state
    }

    fn observation<N: Number>(state: [N; 4]) -> [N; 4] {
        state
    }

    #[inline]
    fn transition<N: Number>([place, speed, angle, spin]: [N; 4], action: N) -> Step<N, [N; 4]> {
        let [cart, pole] = accelerations(action, angle.clone(), spin.clone());
        let state =
            [place + speed.clone() * STEP, speed + cart * STEP, angle + spin.clone() * STEP, spin + pole * STEP];
        let [place, _, angle, _] = &state;
        let ended = place.clone().abs().greater(TRACK).or(angle.clone().abs().greater(TILT));
        Step { reward: place.filled(1.0), ended: Some(ended), state }
    }
}
