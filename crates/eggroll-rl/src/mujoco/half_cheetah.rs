//! `HalfCheetah-v5`.

use super::MujocoError;
use super::simulation::{Body, ResetNoise, Simulation, TrackPoint, squared};
use crate::EpisodeKey;
use burn_rl::{Environment, StepResult};
use std::path::Path;

static BODY: Body = Body {
    environment: "HalfCheetah-v5",
    file: "half_cheetah.xml",
    size: [9, 9, 6],
    frame_skip: 5,
    time_limit: HalfCheetah::MAX_STEPS,
    position_noise: ResetNoise::Uniform(0.1),
    velocity_noise: ResetNoise::Normal(0.1),
    place: TrackPoint::Root,
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
/// Physics equal Gymnasium's; the random numbers of the first state are functions of an [`EpisodeKey`].
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
#[derive(Clone, Debug)]
pub struct HalfCheetah {
    simulation: Simulation,
}

impl HalfCheetah {
    /// Reads the description: the file given, or `half_cheetah.xml` of the folder that [`ASSETS`](super::ASSETS) names. The
    /// environment is at rest; episodes begin from it with [`episode`](Self::episode).
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
}

impl Environment for HalfCheetah {
    type State = [f64; 17];
    type Action = [f64; 6];

    const MAX_STEPS: usize = 1000;

    fn state(&self) -> Self::State {
        let mut seen = self.simulation.positions()[1..].iter().chain(self.simulation.velocities());
        std::array::from_fn(|_| *seen.next().expect("8 positions and 9 velocities"))
    }

    fn step(&mut self, action: Self::Action) -> StepResult<Self::State> {
        let velocity = self.simulation.advance(&action);
        StepResult {
            next_state: self.state(),
            reward: velocity - CONTROL_COST * squared(&action),
            done: false,
            truncated: self.simulation.is_over(),
        }
    }

    fn reset(&mut self) {
        self.simulation.reset();
    }
}
