//! `HalfCheetah-v5`.

use super::locomotion::{Body, Locomotion};
use super::simulation::{BodySpec, ResetNoise, Simulation, TrackPoint, squared};

static SPEC: BodySpec = BodySpec {
    environment: "HalfCheetah-v5",
    file: "half_cheetah.xml",
    size: [9, 9, 6],
    frame_skip: 5,
    position_noise: ResetNoise::Uniform(0.1),
    velocity_noise: ResetNoise::Normal(0.1),
    track_point: TrackPoint::Root,
};
const CONTROL_COST: f64 = 0.1;

/// A two-legged body that is to run forward in a plane, as Gymnasium's `HalfCheetah-v5`.
///
/// | | |
/// |---|---|
/// | observation | 17: all positions but the one along the track, all velocities |
/// | action | 6 torques in `[−1, 1]` |
/// | reward | `Δx/Δt − 0.1·Σ aᵢ²` |
/// | first state | the initial one, plus uniform numbers in `[−0.1, 0.1)` at positions and normal ones of scale 0.1 at velocities |
/// | end | after 1000 steps of 0.05 s |
///
/// # Example
///
/// ```no_run
/// use burn_rl::Environment;
/// use eggroll_rl::EpisodeKey;
/// use eggroll_rl::mujoco::HalfCheetah;
///
/// # fn main() -> Result<(), eggroll_rl::mujoco::MujocoError> {
/// let mut cheetah = HalfCheetah::open(None)?.episode(EpisodeKey::new(1, 0, 0));
/// let result = cheetah.step([0.5; 6]);
/// assert_eq!(result.next_state.len(), 17);
/// # Ok(())
/// # }
/// ```
pub type HalfCheetah = Locomotion<HalfCheetahBody>;

/// The body of [`HalfCheetah`].
#[derive(Clone, Debug)]
pub struct HalfCheetahBody;

impl Body for HalfCheetahBody {
    type State = [f64; 17];
    type Action = [f64; 6];

    const SPEC: &'static BodySpec = &SPEC;

    fn state(simulation: &Simulation) -> Self::State {
        let mut seen = simulation.positions()[1..].iter().chain(simulation.velocities());
        std::array::from_fn(|_| *seen.next().expect("8 positions and 9 velocities"))
    }

    fn reward(_: &mut Simulation, velocity: f64, action: &[f64]) -> (f64, bool) {
        (velocity - CONTROL_COST * squared(action), false)
    }
}
