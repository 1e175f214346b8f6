//! Two links to swing up from the middle joint: Acrobot-v1.

use super::number::{Flag, Number, wrapped};
use super::physics::{Physics, Step};
use crate::{ActionSpace, EpisodeKey};
use std::f32::consts::PI;

/// Seconds of a step.
const STEP: f32 = 0.2;
const FIRST_SPEED: f32 = 4.0 * PI;
const SECOND_SPEED: f32 = 9.0 * PI;
/// Every number of a new state is between minus this and this.
const START: f32 = 0.1;
/// An episode ends where the end of the links is less deep.
const LINE: f32 = -1.0;

// Links of mass 1 and length 1, their centers in the middle (`c = ½`), moments of inertia 1, gravity 9.8.
/// `½ = l·c`, by which the links move each other.
const COUPLING: f32 = 0.5;
/// `g·c`: the second link's weight at the second joint.
const SECOND_WEIGHT: f32 = 9.8 * COUPLING;
/// `g·(c + l)`: the additional weight of both links at the first joint.
const FIRST_WEIGHT: f32 = 9.8 * (COUPLING + 1.0);
/// `d₁ = c² + (l² + c² + 2·l·c·cos θ₂) + 2` is this and `cos θ₂`.
const FIRST_INERTIA: f32 = 3.5;
/// `d₂ = c² + l·c·cos θ₂ + 1` is this and `½·cos θ₂`; without the cosine it is the second link's own inertia.
const SECOND_INERTIA: f32 = 1.25;
/// `1.25·d₁ − d₂²` is this less `¼·cos² θ₂`.
const DETERMINANT: f32 = 2.8125;

/// Acrobot-v1: two links hang from a joint. A torque of −1, 0 or 1 (actions 0, 1, 2) at the joint between them is to swing their end
/// above a line.
///
/// The state is `θ₁, θ₂, θ̇₁, θ̇₂`, the second angle relative to the first link, all 0 hanging down; the observation
/// `cos θ₁, sin θ₁, cos θ₂, sin θ₂, θ̇₁, θ̇₂`. Accelerations solve, with the torque `u`,
///
/// ```text
/// d₁·θ̈₁ + d₂·θ̈₂ = −φ₁                               d₁ = 3.5 + cos θ₂
/// d₂·θ̈₁ + 1.25·θ̈₂ = u − ½·θ̇₁²·sin θ₂ − φ₂          d₂ = 1.25 + ½·cos θ₂
/// φ₁ = −½·θ̇₂·(θ̇₂ + 2·θ̇₁)·sin θ₂ + 14.7·sin θ₁ + φ₂     φ₂ = 4.9·sin(θ₁ + θ₂)
/// ```
///
/// A step is one of Runge and Kutta's of fourth order over 0.2 s; then whole turns are taken from the angles and speeds clamped to `4π`
/// and `9π`. Every step costs 1, but for the last, where `−cos θ₁ − cos(θ₁ + θ₂) > 1`; otherwise episodes end after 500.
///
/// # Example
///
/// ```
/// use eggroll_rl::{Acrobot, TensorEnvironment};
///
/// let mut state = [0.0; 4]; // hanging at rest
/// let transition = Acrobot::new().step_host(&mut state, &[1.0]);
/// assert_eq!((state, transition.reward, transition.terminated), ([0.0; 4], -1.0, false));
/// ```
///
/// # References
///
/// Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", 1996; Sutton and Barto,
/// "Reinforcement Learning: An Introduction", 1998, section 11.3; Towers et al., "Gymnasium", arXiv 2407.17032.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acrobot;

impl Acrobot {
    /// Acrobot-v1.
    pub fn new() -> Self {
        Self
    }
}

/// Accelerations of both joints.
#[inline]
fn accelerations<N: Number>([first, second, first_spin, second_spin]: [N; 4], torque: N) -> [N; 2] {
    let (sin, cos) = (second.clone().sin(), second.clone().cos());
    let sway = sin * COUPLING;
    let weight = (first.clone() + second).sin() * SECOND_WEIGHT; // φ₂
    let load = weight.clone() + first.sin() * FIRST_WEIGHT
        - sway.clone() * second_spin.clone() * (second_spin + first_spin.clone() + first_spin.clone()); // φ₁
    let drive = torque - sway * first_spin.clone() * first_spin - weight;
    let both = cos.clone() + FIRST_INERTIA; // d₁
    let shared = cos.clone() * COUPLING + SECOND_INERTIA; // d₂
    let determinant = cos.clone() * cos * -(COUPLING * COUPLING) + DETERMINANT;
    let first = (load.clone() * -SECOND_INERTIA - shared.clone() * drive.clone()) / determinant.clone();
    let second = (both * drive + shared * load) / determinant;
    [first, second]
}

/// A step of Runge and Kutta's of fourth order.
#[inline]
fn runge_kutta<N: Number>(start: [N; 4], derivative: impl Fn(&[N; 4]) -> [N; 4]) -> [N; 4] {
    let along = |y: &[N; 4], k: &[N; 4], h: f32| -> [N; 4] { std::array::from_fn(|i| y[i].clone() + k[i].clone() * h) };
    let k1 = derivative(&start);
    let k2 = derivative(&along(&start, &k1, STEP / 2.0));
    let k3 = derivative(&along(&start, &k2, STEP / 2.0));
    let k4 = derivative(&along(&start, &k3, STEP));
    let sum = along(&along(&along(&k1, &k2, 2.0), &k3, 2.0), &k4, 1.0);
    along(&start, &sum, STEP / 6.0)
}

/// The state after a step, in bounds.
#[inline]
fn bounded<N: Number>([first, second, first_spin, second_spin]: [N; 4]) -> [N; 4] {
    [
        wrapped(first),
        wrapped(second),
        first_spin.clamp(-FIRST_SPEED, FIRST_SPEED),
        second_spin.clamp(-SECOND_SPEED, SECOND_SPEED),
    ]
}

/// How far the end hangs below the joint.
#[inline]
fn depth<N: Number>(first: N, second: N) -> N {
    first.clone().cos() + (first + second).cos()
}

impl Physics for Acrobot {
    type State<N: Number> = [N; 4];
    type Seen<N: Number> = [N; 6];
    const NAME: &'static str = "Acrobot-v1";
    const ACTIONS: ActionSpace = ActionSpace::Discrete(3);
    const TIME_LIMIT: usize = 500;
    const SOLVED_AT: Option<f32> = Some(-100.0);

    fn start(key: EpisodeKey) -> [f32; 4] {
        let mut state = [0.0; 4];
        key.fill_uniform(-START, START, &mut state);
        state
    }

    fn observation<N: Number>([first, second, first_spin, second_spin]: [N; 4]) -> [N; 6] {
        [first.clone().cos(), first.sin(), second.clone().cos(), second.sin(), first_spin, second_spin]
    }

    #[inline]
    fn transition<N: Number>(state: [N; 4], action: N) -> Step<N, [N; 4]> {
        let torque = action - 1.0;
        let state = bounded(runge_kutta(state, |state: &[N; 4]| {
            let [first, second] = accelerations(state.clone(), torque.clone());
            [state[2].clone(), state[3].clone(), first, second]
        }));
        let ended = depth(state[0].clone(), state[1].clone()).less(LINE);
        Step { state, reward: ended.clone().number() - 1.0, ended: Some(ended) }
    }
}
