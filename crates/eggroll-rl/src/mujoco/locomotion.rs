//! Environments of bodies that move along a track.

use super::MujocoError;
use super::simulation::{BodySpec, Simulation, TIME_LIMIT};
use crate::EpisodeKey;
use burn_rl::{Environment, StepResult};
use std::marker::PhantomData;
use std::path::Path;

/// A body, as Gymnasium observes and rewards it: one file for each.
pub trait Body {
    /// An observation.
    type State;
    /// Torques of the actuators.
    type Action: AsRef<[f64]>;

    /// Its description.
    const SPEC: &'static BodySpec;

    /// Observes the body.
    fn state(simulation: &Simulation) -> Self::State;

    /// The reward of a step that moved the body at `velocity` along the track, and whether the body fell in it.
    fn reward(simulation: &mut Simulation, velocity: f64, action: &[f64]) -> (f64, bool);
}

/// An environment of Gymnasium in which a body moves along a track: [`HalfCheetah`](super::HalfCheetah), [`Hopper`](super::Hopper),
/// [`Walker2d`](super::Walker2d), [`Humanoid`](super::Humanoid).
///
/// Physics equal Gymnasium's; the random numbers of the first state are functions of an [`EpisodeKey`].
#[derive(Clone, Debug)]
pub struct Locomotion<B> {
    simulation: Simulation,
    body: PhantomData<B>,
}

impl<B: Body> Locomotion<B> {
    fn of(simulation: Simulation) -> Self {
        Self { simulation, body: PhantomData }
    }

    /// Reads the description: the file given, or Gymnasium's in the folder that [`ASSETS`](super::ASSETS) names. The environment is at
    /// rest; episodes begin from it with [`episode`](Self::episode).
    ///
    /// # Errors
    ///
    /// If there is no such file, or it describes another body.
    ///
    /// # Panics
    ///
    /// Panics if the library is of another version than the bindings.
    pub fn open(xml: Option<&Path>) -> Result<Self, MujocoError> {
        Ok(Self::of(Simulation::open(B::SPEC, xml)?))
    }

    /// The same body at the beginning of the episode of a key.
    pub fn episode(&self, key: EpisodeKey) -> Self {
        Self::of(self.simulation.episode(key))
    }

    /// Starts anew from positions and velocities.
    ///
    /// # Panics
    ///
    /// Panics if a length is not the number of the body's positions or velocities.
    pub fn set_state(&mut self, positions: &[f64], velocities: &[f64]) {
        self.simulation.set_state(positions, velocities);
    }
}

impl<B: Body> Environment for Locomotion<B> {
    type State = B::State;
    type Action = B::Action;

    const MAX_STEPS: usize = TIME_LIMIT;

    fn state(&self) -> Self::State {
        B::state(&self.simulation)
    }

    fn step(&mut self, action: Self::Action) -> StepResult<Self::State> {
        let velocity = self.simulation.advance(action.as_ref());
        let (reward, fallen) = B::reward(&mut self.simulation, velocity, action.as_ref());
        StepResult { next_state: self.state(), reward, done: fallen, truncated: self.simulation.is_over() }
    }

    fn reset(&mut self) {
        self.simulation.reset();
    }
}
