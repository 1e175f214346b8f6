//! `Humanoid-v5`.

use super::locomotion::{Body, Locomotion};
use super::simulation::{BodySpec, ResetNoise, Simulation, TrackPoint, squared};
use std::ops::Range;

static SPEC: BodySpec = BodySpec {
    environment: "Humanoid-v5",
    file: "humanoid.xml",
    size: [24, 23, 17],
    frame_skip: 5,
    position_noise: ResetNoise::Uniform(1e-2),
    velocity_noise: ResetNoise::Uniform(1e-2),
    track_point: TrackPoint::MassCenter,
};
const FORWARD_REWARD: f64 = 1.25;
const HEALTHY_REWARD: f64 = 5.0;
const CONTROL_COST: f64 = 0.1;
const CONTACT_COST: f64 = 5e-7;
const MOST_CONTACT_COST: f64 = 10.0;
const HEALTHY_HEIGHTS: Range<f64> = 1.0..2.0;

/// A body of two legs and two arms that is to walk forward in space without falling, as Gymnasium's `Humanoid-v5`.
///
/// | | |
/// |---|---|
/// | observation | 348: all positions but the two on the ground, all velocities; of all bodies but the world inertias, velocities and external forces, and between these two the forces of actuators |
/// | action | 17 torques in `[−0.4, 0.4]` |
/// | reward | `5 + 1.25·Δx/Δt − 0.1·Σ aᵢ² − min(5e-7·Σ fᵢ², 10)`, `x` of the center of mass and `f` the external forces; without the 5 for the step in which it falls |
/// | first state | the initial one, plus uniform numbers in `[−0.01, 0.01)` |
/// | end | when its height is 1 or less or 2 or more; after 1000 steps of 0.015 s |
///
/// # Example
///
/// ```no_run
/// use burn_rl::Environment;
/// use eggroll_rl::EpisodeKey;
/// use eggroll_rl::mujoco::Humanoid;
///
/// # fn main() -> Result<(), eggroll_rl::mujoco::MujocoError> {
/// let mut humanoid = Humanoid::open(None)?.episode(EpisodeKey::new(1, 0, 0));
/// let result = humanoid.step([0.0; 17]);
/// assert_eq!((result.next_state.len(), result.done), (348, false));
/// # Ok(())
/// # }
/// ```
pub type Humanoid = Locomotion<HumanoidBody>;

/// The body of [`Humanoid`].
#[derive(Clone, Debug)]
pub struct HumanoidBody;

impl Body for HumanoidBody {
    type State = [f64; 348];
    type Action = [f64; 17];

    const SPEC: &'static BodySpec = &SPEC;

    fn state(simulation: &Simulation) -> Self::State {
        let body = simulation;
        let state = [&body.positions()[2..], body.velocities(), body.inertias(), body.body_velocities()];
        let forces = [body.actuator_forces(), body.external_forces()];
        let mut seen = state.into_iter().chain(forces).flatten();
        std::array::from_fn(|_| *seen.next().expect("22 + 23 numbers of the state, 130 + 78 of bodies, 17 + 78 forces"))
    }

    fn reward(simulation: &mut Simulation, velocity: f64, action: &[f64]) -> (f64, bool) {
        simulation.find_external_forces();
        let height = simulation.positions()[2];
        let healthy = HEALTHY_HEIGHTS.start < height && height < HEALTHY_HEIGHTS.end;
        let survival = if healthy { HEALTHY_REWARD } else { 0.0 };
        let contact = (CONTACT_COST * squared(simulation.external_forces())).min(MOST_CONTACT_COST);
        (survival + FORWARD_REWARD * velocity - CONTROL_COST * squared(action) - contact, !healthy)
    }
}
