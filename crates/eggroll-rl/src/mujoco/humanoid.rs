//! `Humanoid-v5`.

use super::MujocoError;
use super::simulation::{Body, ResetNoise, Simulation, TrackPoint, squared};
use crate::EpisodeKey;
use burn_rl::{Environment, StepResult};
use std::ops::Range;
use std::path::Path;

static BODY: Body = Body {
    environment: "Humanoid-v5",
    file: "humanoid.xml",
    size: [24, 23, 17],
    frame_skip: 5,
    time_limit: Humanoid::MAX_STEPS,
    position_noise: ResetNoise::Uniform(1e-2),
    velocity_noise: ResetNoise::Uniform(1e-2),
    place: TrackPoint::MassCenter,
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
/// Physics equal Gymnasium's; the random numbers of the first state are functions of an [`EpisodeKey`].
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
#[derive(Clone, Debug)]
pub struct Humanoid {
    simulation: Simulation,
}

impl Humanoid {
    /// Reads the description: the file given, or `humanoid.xml` of the folder that [`ASSETS`](super::ASSETS) names. The environment is
    /// at rest; episodes begin from it with [`episode`](Self::episode).
    ///
    /// # Errors
    ///
    /// If there is no such file, or it describes another body.
    ///
    /// # Panics
    ///
    /// Panics if the library is of another version than the bindings.
    pub fn open(xml: Option<&Path>) -> Result<Self, MujocoError> {
        Ok(Self { simulation: Simulation::open(&BODY, xml)? })
    }

    /// The same body at the beginning of the episode of a key.
    pub fn episode(&self, key: EpisodeKey) -> Self {
        Self { simulation: self.simulation.episode(key) }
    }

    /// Starts anew from positions and velocities.
    ///
    /// # Panics
    ///
    /// Panics unless there are 24 positions and 23 velocities.
    pub fn set_state(&mut self, positions: &[f64], velocities: &[f64]) {
        self.simulation.set_state(positions, velocities);
    }
}

impl Environment for Humanoid {
    type State = [f64; 348];
    type Action = [f64; 17];

    const MAX_STEPS: usize = 1000;

    fn state(&self) -> Self::State {
        let body = &self.simulation;
        let state = [&body.positions()[2..], body.velocities(), body.inertias(), body.body_velocities()];
        let forces = [body.actuator_forces(), body.external_forces()];
        let mut seen = state.into_iter().chain(forces).flatten();
        std::array::from_fn(|_| *seen.next().expect("22 + 23 numbers of the state, 130 + 78 of bodies, 17 + 78 forces"))
    }

    fn step(&mut self, action: Self::Action) -> StepResult<Self::State> {
        let velocity = self.simulation.advance(&action);
        self.simulation.find_external_forces();
        let height = self.simulation.positions()[2];
        let healthy = HEALTHY_HEIGHTS.start < height && height < HEALTHY_HEIGHTS.end;
        let survival = if healthy { HEALTHY_REWARD } else { 0.0 };
        let contact = (CONTACT_COST * squared(self.simulation.external_forces())).min(MOST_CONTACT_COST);
        StepResult {
            next_state: self.state(),
            reward: survival + FORWARD_REWARD * velocity - CONTROL_COST * squared(&action) - contact,
            done: !healthy,
            truncated: self.simulation.is_over(),
        }
    }

    fn reset(&mut self) {
        self.simulation.reset();
    }
}
