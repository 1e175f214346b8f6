//! `Walker2d-v5`.

use super::MujocoError;
use super::simulation::{Body, ResetNoise, Simulation, TrackPoint, squared};
use crate::EpisodeKey;
use burn_rl::{Environment, StepResult};
use std::ops::Range;
use std::path::Path;

static BODY: Body = Body {
    environment: "Walker2d-v5",
    file: "walker2d_v5.xml",
    size: [9, 9, 6],
    frame_skip: 4,
    time_limit: Walker2d::MAX_STEPS,
    position_noise: ResetNoise::Uniform(5e-3),
    velocity_noise: ResetNoise::Uniform(5e-3),
    place: TrackPoint::Root,
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
/// Physics equal Gymnasium's; the random numbers of the first state are functions of an [`EpisodeKey`].
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
#[derive(Clone, Debug)]
pub struct Walker2d {
    simulation: Simulation,
}

impl Walker2d {
    /// Reads the description: the file given, or `walker2d_v5.xml` of the folder that [`ASSETS`](super::ASSETS) names. The environment is
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
    /// Panics unless there are 9 of each.
    pub fn set_state(&mut self, positions: &[f64], velocities: &[f64]) {
        self.simulation.set_state(positions, velocities);
    }

    fn is_healthy(&self) -> bool {
        let positions = self.simulation.positions();
        HEALTHY_HEIGHTS.start < positions[1] && positions[1] < HEALTHY_HEIGHTS.end && positions[2].abs() < HEALTHY_ANGLE
    }
}

impl Environment for Walker2d {
    type State = [f64; 17];
    type Action = [f64; 6];

    const MAX_STEPS: usize = 1000;

    fn state(&self) -> Self::State {
        let velocities = self.simulation.velocities().iter().map(|v| v.clamp(-SEEN_VELOCITY, SEEN_VELOCITY));
        let mut seen = self.simulation.positions()[1..].iter().copied().chain(velocities);
        std::array::from_fn(|_| seen.next().expect("8 positions and 9 velocities"))
    }

    fn step(&mut self, action: Self::Action) -> StepResult<Self::State> {
        let velocity = self.simulation.advance(&action);
        let healthy = self.is_healthy();
        let survival = if healthy { HEALTHY_REWARD } else { 0.0 };
        StepResult {
            next_state: self.state(),
            reward: survival + velocity - CONTROL_COST * squared(&action),
            done: !healthy,
            truncated: self.simulation.is_over(),
        }
    }

    fn reset(&mut self) {
        self.simulation.reset();
    }
}
