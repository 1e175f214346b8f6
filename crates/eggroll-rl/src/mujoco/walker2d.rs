//! `Walker2d-v5`.

use super::locomotion::{Body, Locomotion};
use super::simulation::{BodySpec, ResetNoise, Simulation, TrackPoint, squared};
use std::ops::Range;

static SPEC: BodySpec = BodySpec {
    environment: "Walker2d-v5",
    file: "walker2d_v5.xml",
    size: [9, 9, 6],
    frame_skip: 4,
    position_noise: ResetNoise::Uniform(5e-3),
    velocity_noise: ResetNoise::Uniform(5e-3),
    track_point: TrackPoint::Root,
};
const CONTROL_COST: f64 = 1e-3;
const HEALTHY_REWARD: f64 = 1.0;
/// The largest velocity that is seen.
const SEEN_VELOCITY: f64 = 10.0;
const HEALTHY_HEIGHTS: Range<f64> = 0.8..2.0;
const HEALTHY_ANGLE: f64 = 1.0;

/// A two-legged body that is to walk forward in a plane without falling, as Gymnasium's `Walker2d-v5`.
///
/// | | |
/// |---|---|
/// | observation | 17: all positions but the one along the track, all velocities, clipped to `[−10, 10]` |
/// | action | 6 torques in `[−1, 1]` |
/// | reward | `1 + Δx/Δt − 0.001·Σ aᵢ²`; without the 1 for the step in which it falls |
/// | first state | the initial one, plus uniform numbers in `[−0.005, 0.005)` |
/// | end | when its height is 0.8 or less or 2 or more, or its angle is 1 or more, either sign; after 1000 steps of 0.008 s |
///
/// # Example
///
/// ```no_run
/// use burn_rl::Environment;
/// use eggroll_rl::EpisodeKey;
/// use eggroll_rl::mujoco::Walker2d;
///
/// # fn main() -> Result<(), eggroll_rl::mujoco::MujocoError> {
/// let mut walker = Walker2d::open(None)?.episode(EpisodeKey::new(1, 0, 0));
/// let result = walker.step([0.0; 6]);
/// assert_eq!((result.next_state.len(), result.done), (17, false));
/// # Ok(())
/// # }
/// ```
pub type Walker2d = Locomotion<Walker2dBody>;

/// The body of [`Walker2d`].
#[derive(Clone, Debug)]
pub struct Walker2dBody;

impl Body for Walker2dBody {
    type State = [f64; 17];
    type Action = [f64; 6];

    const SPEC: &'static BodySpec = &SPEC;

    fn state(simulation: &Simulation) -> Self::State {
        let velocities = simulation.velocities().iter().map(|v| v.clamp(-SEEN_VELOCITY, SEEN_VELOCITY));
        let mut seen = simulation.positions()[1..].iter().copied().chain(velocities);
        std::array::from_fn(|_| seen.next().expect("8 positions and 9 velocities"))
    }

    fn reward(simulation: &mut Simulation, velocity: f64, action: &[f64]) -> (f64, bool) {
        let healthy = is_healthy(simulation);
        let survival = if healthy { HEALTHY_REWARD } else { 0.0 };
        (survival + velocity - CONTROL_COST * squared(action), !healthy)
    }
}

fn is_healthy(simulation: &Simulation) -> bool {
    let positions = simulation.positions();
    HEALTHY_HEIGHTS.start < positions[1] && positions[1] < HEALTHY_HEIGHTS.end && positions[2].abs() < HEALTHY_ANGLE
}
