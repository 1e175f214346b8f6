//! A simulation that is reset by key and moved by actions.

use super::{MujocoError, description};
use crate::EpisodeKey;
use mujoco_rs::prelude::{MjData, MjModel};
use std::f64::consts::TAU;
use std::path::Path;
use std::sync::Arc;

/// Velocities of a root that moves freely in space.
const ROOT_VELOCITIES: usize = 6;

/// Steps of an episode.
pub(super) const TIME_LIMIT: usize = 1000;

/// An environment's description.
#[derive(Debug)]
pub struct BodySpec {
    /// The environment's name.
    pub environment: &'static str,
    /// The file that Gymnasium describes it in.
    pub file: &'static str,
    /// Positions, velocities and actuators.
    pub size: [usize; 3],
    /// Steps of the simulation for one of the environment.
    pub frame_skip: usize,
    /// What is added to the initial positions.
    pub position_noise: ResetNoise,
    /// What is added to the initial velocities, 0.
    pub velocity_noise: ResetNoise,
    /// The point whose velocity is rewarded.
    pub track_point: TrackPoint,
}

/// What moves along the track.
#[derive(Clone, Copy, Debug)]
pub enum TrackPoint {
    /// The first position: of the body that the others hang on.
    Root,
    /// The center of mass of all bodies.
    MassCenter,
}

/// A body in motion, and where its random numbers come from.
#[derive(Clone, Debug)]
pub struct Simulation {
    spec: &'static BodySpec,
    data: MjData<Arc<MjModel>>,
    key: EpisodeKey,
    /// Resets so far: each has its own random numbers.
    resets: u32,
    /// Steps of the environment since the last one.
    steps: usize,
}

impl Simulation {
    /// The body at rest, of the description given or of the usual one.
    pub fn open(spec: &'static BodySpec, given: Option<&Path>) -> Result<Self, MujocoError> {
        let path = description(given, spec.file)?;
        let model = MjModel::from_xml(&path)
            .map_err(|error| MujocoError::Description { path: path.clone(), reason: error.to_string() })?;
        let data = MjData::new(Arc::new(model));
        let found = [data.qpos().len(), data.qvel().len(), data.ctrl().len()];
        if found != spec.size {
            return Err(MujocoError::OtherBody { path, environment: spec.environment, expected: spec.size, found });
        }
        Ok(Self { spec, data, key: EpisodeKey::new(0, 0, 0), resets: 0, steps: 0 })
    }

    /// The same body at the beginning of an episode whose resets draw under `key`.
    pub fn episode(&self, key: EpisodeKey) -> Self {
        let mut simulation = Self { key, resets: 0, ..self.clone() };
        simulation.reset();
        simulation
    }

    pub fn positions(&self) -> &[f64] {
        self.data.qpos()
    }

    pub fn velocities(&self) -> &[f64] {
        self.data.qvel()
    }

    pub fn is_over(&self) -> bool {
        self.steps >= TIME_LIMIT
    }

    /// Starts anew near the initial state.
    pub fn reset(&mut self) {
        let (key, reset) = (self.key, self.resets);
        let mut draw = 0;
        let mut uniform = || {
            draw += 1;
            f64::from(key.uniform(reset, draw - 1))
        };
        self.data.reset();
        self.data.qpos_mut().iter_mut().for_each(|x| *x += self.spec.position_noise.draw(&mut uniform));
        self.data.qvel_mut().iter_mut().for_each(|v| *v += self.spec.velocity_noise.draw(&mut uniform));
        self.data.forward();
        self.resets += 1;
        self.steps = 0;
    }

    /// Starts anew from a state.
    pub fn set_state(&mut self, positions: &[f64], velocities: &[f64]) {
        self.data.reset();
        self.data.qpos_mut().copy_from_slice(positions);
        self.data.qvel_mut().copy_from_slice(velocities);
        self.data.forward();
        self.steps = 0;
    }

    /// One step of the environment under an action: the mean velocity of the body along the track.
    pub fn advance(&mut self, action: &[f64]) -> f64 {
        let before = self.place();
        self.data.ctrl_mut().copy_from_slice(action);
        (0..self.spec.frame_skip).for_each(|_| self.data.step());
        self.steps += 1;
        let seconds = self.spec.frame_skip as f64 * self.data.model_opt().timestep;
        (self.place() - before) / seconds
    }

    /// Where it is along the track.
    fn place(&self) -> f64 {
        match self.spec.track_point {
            TrackPoint::Root => self.data.qpos()[0],
            TrackPoint::MassCenter => {
                let masses = self.data.model().body_mass();
                let moments = masses.iter().zip(self.data.xipos()).map(|(mass, at)| mass * at[0]);
                moments.sum::<f64>() / masses.iter().sum::<f64>()
            }
        }
    }

    /// Finds the [external forces](Self::external_forces) of the last step, which observations of three dimensions have.
    pub fn find_external_forces(&mut self) {
        self.data.rne_post_constraint();
    }

    /// Inertias of all bodies but the world about the center of mass.
    pub fn inertias(&self) -> &[f64] {
        self.data.cinert()[1..].as_flattened()
    }

    /// Velocities of all bodies but the world.
    pub fn body_velocities(&self) -> &[f64] {
        self.data.cvel()[1..].as_flattened()
    }

    /// Forces of the actuators on all joints but the root's.
    pub fn actuator_forces(&self) -> &[f64] {
        &self.data.qfrc_actuator()[ROOT_VELOCITIES..]
    }

    /// External forces and torques on all bodies but the world, as they were [found](Self::find_external_forces) last; 0 at a first state.
    pub fn external_forces(&self) -> &[f64] {
        self.data.cfrc_ext()[1..].as_flattened()
    }
}

/// Random numbers of a first state.
#[derive(Clone, Copy, Debug)]
pub enum ResetNoise {
    /// Uniform in `[−scale, scale)`.
    Uniform(f64),
    /// Normal with this standard deviation, by Box and Muller.
    Normal(f64),
}

impl ResetNoise {
    /// One of them, from uniform numbers in `[0, 1)`.
    fn draw(self, mut uniform: impl FnMut() -> f64) -> f64 {
        match self {
            Self::Uniform(scale) => scale * (2.0 * uniform() - 1.0),
            Self::Normal(scale) => {
                let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
                scale * radius * (TAU * uniform()).cos()
            }
        }
    }
}

/// `Σ xᵢ²`
pub(super) fn squared(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum()
}
