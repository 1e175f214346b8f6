//! `Hopper-v5`.

use super::locomotion::{Body, Locomotion};
use super::simulation::{BodySpec, ResetNoise, Simulation, TrackPoint, squared};

static SPEC: BodySpec = BodySpec {
    environment: "Hopper-v5",
    file: "hopper.xml",
    size: [6, 6, 3],
    frame_skip: 4,
    position_noise: ResetNoise::Uniform(5e-3),
    velocity_noise: ResetNoise::Uniform(5e-3),
    track_point: TrackPoint::Root,
};
const CONTROL_COST: f64 = 1e-3;
const HEALTHY_REWARD: f64 = 1.0;
/// The largest velocity that is seen.
const SEEN_VELOCITY: f64 = 10.0;
/// Positions and velocities, but for the first two, are healthy below it.
const HEALTHY_STATE: f64 = 100.0;
const HEALTHY_HEIGHT: f64 = 0.7;
const HEALTHY_ANGLE: f64 = 0.2;

/// A one-legged body that is to hop forward in a plane without falling, as Gymnasium's `Hopper-v5`.
///
/// | | |
/// |---|---|
/// | observation | 11: all positions but the one along the track, all velocities, clipped to `[−10, 10]` |
/// | action | 3 torques in `[−1, 1]` |
/// | reward | `1 + Δx/Δt − 0.001·Σ aᵢ²`; without the 1 for the step in which it falls |
/// | first state | the initial one, plus uniform numbers in `[−0.005, 0.005)` |
/// | end | a height of 0.7 or less, an angle of 0.2 or more, another number of the state of 100 or more (either sign), or 1000 steps of 0.008 s |
///
/// # Example
///
/// ```no_run
/// use burn_rl::Environment;
/// use eggroll_rl::EpisodeKey;
/// use eggroll_rl::mujoco::Hopper;
///
/// # fn main() -> Result<(), eggroll_rl::mujoco::MujocoError> {
/// let mut hopper = Hopper::open(None)?.episode(EpisodeKey::new(1, 0, 0));
/// let result = hopper.step([0.0; 3]);
/// assert_eq!((result.next_state.len(), result.done), (11, false));
/// # Ok(())
/// # }
/// ```
pub type Hopper = Locomotion<HopperBody>;

/// The body of [`Hopper`].
#[derive(Clone, Debug)]
pub struct HopperBody;

impl Body for HopperBody {
    type State = [f64; 11];
    type Action = [f64; 3];

    const SPEC: &'static BodySpec = &SPEC;

    fn state(simulation: &Simulation) -> Self::State {
        let velocities = simulation.velocities().iter().map(|v| v.clamp(-SEEN_VELOCITY, SEEN_VELOCITY));
        let mut seen = simulation.positions()[1..].iter().copied().chain(velocities);
        std::array::from_fn(|_| seen.next().expect("5 positions and 6 velocities"))
    }

    fn reward(simulation: &mut Simulation, velocity: f64, action: &[f64]) -> (f64, bool) {
        let healthy = is_healthy(simulation);
        let survival = if healthy { HEALTHY_REWARD } else { 0.0 };
        (survival + velocity - CONTROL_COST * squared(action), !healthy)
    }
}

fn is_healthy(simulation: &Simulation) -> bool {
    let (positions, velocities) = (simulation.positions(), simulation.velocities());
    let (height, angle) = (positions[1], positions[2]);
    let in_range = positions[2..].iter().chain(velocities).all(|x| x.abs() < HEALTHY_STATE);
    in_range && height > HEALTHY_HEIGHT && angle.abs() < HEALTHY_ANGLE
}
